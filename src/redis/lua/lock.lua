#!lua
-- @key any
-- Takes, keeps or gives back a lock.
--
-- KEYS[1]  its key
--
-- {'done'}
-- {'held', owner}   what it holds instead, '' for nothing

-- What it must hold now, '' for nothing, and what it is to hold, '' to give it back.
local expected, wanted, lease_ms = unpack(ARGV)
local now = redis.call('GET', KEYS[1]) or ''
if now ~= expected then return { 'held', now } end
if wanted == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], wanted, 'PX', lease_ms) end
return { 'done' }
