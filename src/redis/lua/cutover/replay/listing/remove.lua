#!lua
-- @key any
-- Takes an organization off the list, unless it was listed again under a higher number.
--
-- KEYS[1]  <prefix>cutover:replay-waiting
-- ARGV[1]  the organization
-- ARGV[2]  the number of the listing that has ended
--
-- 1, or 0 if nothing was removed
local listing = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not listing or tonumber(listing) > tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
