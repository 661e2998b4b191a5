#!lua
-- @key any
-- KEYS[1]  the lease
-- ARGV[1]  who has it
-- ARGV[2]  lease in ms
--
-- 1, or 0 if it is lost
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
