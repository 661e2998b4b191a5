#!lua
-- @key any
-- Takes, keeps or gives back the lock of a run.
--
-- KEYS[1]  <prefix>migration:lock:<run>
-- ARGV[1]  what the lock must hold now, '' for nothing
-- ARGV[2]  what it is to hold, '' to give it back
-- ARGV[3]  lease in ms
--
-- {'done'}
-- {'held', owner}   what the lock holds instead, '' for nothing
local now = redis.call('GET', KEYS[1]) or ''
if now ~= ARGV[1] then return { 'held', now } end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return { 'done' }
