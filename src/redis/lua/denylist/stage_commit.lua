#!lua
-- @include audit keys local_writes names
-- Contract 4.5, last step: the stage becomes the denylist, in one instant for every client. The old list is
-- renamed and unlinked, for to rename over it would free it here and now, however long it is.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this overwrite
-- ARGV[2]  generation of the name index that the forms belong to
-- ARGV[3]  public id of the caller's key, for the audit trail
--
-- 'committed', 'lapsed', 'stale' or 'frozen'
local list, stage, old = denylist_key(ARGV[2]), stage_key(), replaced_denylist_key()
if redis.call('GET', stage_owner_key()) ~= ARGV[1] then return 'lapsed' end
local refused = check_generation(ARGV[2])
if refused then return refused end

local before, after = redis.call('HLEN', list), redis.call('HLEN', stage)
if before > 0 then
  redis.call('RENAME', list, old)
  redis.call('UNLINK', old)
end
if after > 0 then
  redis.call('PERSIST', stage)
  redis.call('RENAME', stage, list)
end
redis.call('DEL', stage_owner_key())
mark_local_write('d', '')
audit('overwrite', ARGV[3], 'before', before, 'after', after)
return 'committed'
