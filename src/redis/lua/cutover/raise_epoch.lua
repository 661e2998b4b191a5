#!lua
-- @include keys
-- From here on refuses changes of this organization that were admitted under a lower epoch (lib/epoch.lua).
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  epoch
--
-- the epoch in force: this one or a higher one; 0 where the organization does not exist
if redis.call('EXISTS', settings_key()) == 0 then return 0 end
local current = tonumber(redis.call('HGET', settings_key(), 'epoch') or '0')
if tonumber(ARGV[1]) <= current then return current end
redis.call('HSET', settings_key(), 'epoch', ARGV[1])
return tonumber(ARGV[1])
