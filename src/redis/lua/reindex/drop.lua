#!lua flags=allow-oom
-- @wait replicas
-- Removes a generation of the name index and the denylist, a part of it with each call, unless it is in force or being
-- built by now.
--
-- 'in-use'      it is in force or being built, or the settings leave that in doubt, or how many buckets it has: nothing
--               was removed
-- 'more'        call again
-- 'dropped'     nothing of it is left
local generation, field = ARGV[1], 'n' .. ARGV[1]
local have = redis.call('HMGET', settings_key(), 'index', 'building', field)
-- Without the field of the first rebuild, another generation may have been in force than `index` says.
if not have[2] or generation == (have[1] or '0') then return 'in-use' end
if generation == have[2] and redis.call('EXISTS', rebuild_key()) == 1 then return 'in-use' end
local buckets = whole_number(have[3] or '1')
if not buckets then return 'in-use' end
local left = math.max(0, buckets - 128)
for bucket = left, buckets - 1 do redis.call('UNLINK', names_key(generation, bucket)) end
if left > 0 then
  redis.call('HSET', settings_key(), field, left)
  return 'more'
end
redis.call('UNLINK', denylist_key(generation))
redis.call('HDEL', settings_key(), field)
return 'dropped'
