#!lua
-- @key any
-- @include cutover
-- Removes the registration of an instance.
--
-- KEYS[1]  <prefix>cutover
-- ARGV[1]  its id
-- ARGV[2]  '' if it stopped in good order; else why it is removed: its changes are then in doubt (a gap)
--
-- 1, or 0 if it was not registered
if redis.call('HEXISTS', KEYS[1], 'beat:' .. ARGV[1]) == 0 then return 0 end
forget_instance(ARGV[1])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'gap', now_ms() .. ' ' .. ARGV[2]) end
return 1
