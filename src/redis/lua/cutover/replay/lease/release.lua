#!lua
-- @key any
-- KEYS[1]  <prefix>cutover:replayer
-- ARGV[1]  the instance that has the lease
--
-- 1, or 0 if it was lost before
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
