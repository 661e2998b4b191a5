#!lua
-- @key any
-- KEYS[1]  the lease
-- ARGV[1]  who has it
--
-- 1, or 0 if it was lost before
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
