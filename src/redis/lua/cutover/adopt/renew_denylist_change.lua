#!lua
-- @include store
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this change
-- ARGV[2]  lease in ms
--
-- 1, or 0 if the lease is lost
if redis.call('GET', denylist_change_key()) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', denylist_change_key(), ARGV[2])
