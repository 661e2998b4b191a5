#!lua
-- @wait replicas
-- @include names store
-- Begins to change how names are compared: from now on no name changes, and the next generation of the name index has
-- its number. Numbers are never used twice, so what a killed rebuild left of one generation cannot get into another.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms: names may change again that long after the last call of a rebuild that died
-- ARGV[3]  the comparison wanted
--
-- {'unknown-organization'}
-- {'unchanged'}                              names are already compared in this way
-- {'busy'}                                   another rebuild is under way
-- {'inconsistent'}                           the index has more buckets than the settings say
-- {'opened', generation, next, buckets}      the generation in force and how many buckets it has
local now = redis.call('HMGET', settings_key(), 'comparison', 'index', 'building')
if not now[1] then return { 'unknown-organization' } end
if now[1] == ARGV[3] then return { 'unchanged' } end
local index = now[2] or '0'
local buckets = size_of(index).count
if redis.call('EXISTS', names_key(index, buckets)) == 1 then return { 'inconsistent' } end
if not redis.call('SET', rebuild_key(), ARGV[1], 'NX', 'PX', ARGV[2]) then return { 'busy' } end
local following = string.format('%.0f', math.max(tonumber(index), tonumber(now[3] or '0')) + 1)
-- Each generation has its number of buckets in the settings until it is removed: leftovers are found by that.
redis.call('HSET', settings_key(), 'building', following, 'n' .. following, buckets, 'n' .. index, buckets)
return { 'opened', index, following, buckets }
