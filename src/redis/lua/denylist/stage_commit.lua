#!lua
-- @include audit epoch local_writes names store
-- Contract 4.5, last step: the stage becomes the denylist, in one instant for every client. The old list is renamed
-- and unlinked: renaming over it would free it at once, however long it is.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this overwrite
-- ARGV[2]  generation of the name index that the forms belong to
-- ARGV[3]  public id of the caller's key, for the audit trail
-- ARGV[4]  how many names were staged
--
-- 'committed'
-- 'lapsed'                          the stage is not this overwrite's any more, or not whole: start again
-- 'stale', 'frozen'                 nothing was done: read the settings again and retry
local list, stage, old = denylist_key(ARGV[2]), stage_key(), replaced_denylist_key()
if redis.call('GET', stage_owner_key()) ~= ARGV[1] then return 'lapsed' end
local refused = check_generation(ARGV[2])
if refused then return refused end

local before, after = redis.call('HLEN', list), redis.call('HLEN', stage)
if after ~= tonumber(ARGV[4]) then return 'lapsed' end
if before > 0 then
  redis.call('RENAME', list, old)
  redis.call('UNLINK', old)
end
if after > 0 then redis.call('RENAME', stage, list) end
redis.call('DEL', stage_owner_key())
mark_local_write('d', '')
audit('overwrite', ARGV[3], 'before', before, 'after', after)
return 'committed'
