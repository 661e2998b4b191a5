#!lua
-- @wait replicas
-- @include local_writes names
-- Marks names that were denied or removed here (lib/local_writes.lua) as the new comparison has them, too. A later mark
-- stays.
--
-- ARGV[5…]                  two for each mark: name normalized by the new comparison, epoch
-- 'lapsed'                  this rebuild cannot go on (lib/names.lua): names may have changed
-- 'marked'
local token, step, lease_ms = unpack(ARGV, 1, 3)
if not step_rebuild(token, step, lease_ms) then return 'lapsed' end
for i = 5, #ARGV, 2 do
  local normalized_name, epoch = ARGV[i], ARGV[i + 1]
  local have = redis.call('HGET', denylist_writes_key(), normalized_name)
  if not have or tonumber(have) < tonumber(epoch) then
    redis.call('HSET', denylist_writes_key(), normalized_name, epoch)
  end
end
return 'marked'
