#!lua flags=allow-oom
-- @key any
-- Takes an organization off the list, unless it was listed again under a higher number.
--
-- KEYS[1]  <prefix>cutover:replay-waiting
--
-- 1, or 0 if nothing was removed
local organization, ended = unpack(ARGV) -- ended: the number of the listing that has
local listing = redis.call('ZSCORE', KEYS[1], organization)
if not listing or tonumber(listing) > tonumber(ended) then return 0 end
return redis.call('ZREM', KEYS[1], organization)
