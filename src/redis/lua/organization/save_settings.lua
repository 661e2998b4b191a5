#!lua
-- @wait replicas
-- Changes the given settings of an organization and no others, or creates it. The comparison is only set for a new one.
-- The settings count as made here (b), so that no later migration changes them.
--
-- ARGV[4…] two for each setting given: field (min | max | pattern | template | ownership), value, '' to unset it
--
-- 'created' or 'changed'
-- 'min-above-max'                   by what another has set meanwhile: nothing was changed
-- 'loading'                         a migration is loading the organization, and will create it: nothing was changed
local comparison, default_min, default_max = unpack(ARGV, 1, 3)
if redis.call('EXISTS', loading_key()) == 1 then return 'loading' end
local given = {}
for i = 4, #ARGV, 2 do given[ARGV[i]] = ARGV[i + 1] end
local have = redis.call('HMGET', settings_key(), 'min', 'max')
local min, max = given.min or have[1] or default_min, given.max or have[2] or default_max
if tonumber(min) > tonumber(max) then return 'min-above-max' end

local is_new = redis.call('HSETNX', settings_key(), 'comparison', comparison) == 1
redis.call('HSET', settings_key(), 'min', min, 'max', max, 'b', '1')
for field, value in pairs(given) do
  if value == '' then redis.call('HDEL', settings_key(), field) else redis.call('HSET', settings_key(), field, value) end
end
return is_new and 'created' or 'changed'
