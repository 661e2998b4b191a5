#!lua
-- @wait replicas
-- Begins to change how names are compared: from now on no name changes. Numbers of generations are never used twice, so
-- what a killed rebuild left of one cannot get into another.
--
-- {'unchanged'}                              names are already compared in this way
-- {'busy'}                                   another rebuild is under way
-- {'inconsistent'}                           the settings do not say which index is in force and how many buckets it
--                                            has, or there is a later generation than they know, or than `building`
-- {'opened', generation, next, buckets}      the generation in force and how many buckets it has
local token, lease_ms, comparison = unpack(ARGV)
local have = redis.call('HMGET', settings_key(), 'comparison', 'index', 'building')
if (have[1] or 'exact') == comparison then return { 'unchanged' } end
local index, building = have[2] or '0', whole_number(have[3] or '0')
-- Only before the first rebuild may the number of buckets be missing.
local buckets = whole_number(redis.call('HGET', settings_key(), 'n' .. index) or (have[3] and '' or '1'))
if not (whole_number(index) and building and buckets and buckets > 0) then return { 'inconsistent' } end
if tonumber(index) > building then return { 'inconsistent' } end
for _, field in ipairs(redis.call('HKEYS', settings_key())) do
  local generation = tonumber(string.match(field, '^n(%d+)$') or '0')
  if generation > building then return { 'inconsistent' } end
end
if redis.call('EXISTS', names_key(index, buckets)) == 1 then return { 'inconsistent' } end
local following = string.format('%.0f', building + 1)
if redis.call('EXISTS', names_key(following, 0), denylist_key(following)) > 0 then return { 'inconsistent' } end
if not redis.call('SET', rebuild_key(), token .. ' 0', 'NX', 'PX', lease_ms) then return { 'busy' } end
-- Each generation has its number of buckets in the settings until it is removed: leftovers are found by that.
redis.call('HSET', settings_key(), 'building', following, 'n' .. following, buckets, 'n' .. index, buckets)
return { 'opened', index, following, buckets }
