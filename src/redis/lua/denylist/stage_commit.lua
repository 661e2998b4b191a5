#!lua
-- @wait replicas
-- @include local_writes change
-- Contract 4.5, last step: the stage becomes the denylist. The old list is renamed and unlinked: renaming over it would
-- free it at once, however long it is.
--
-- 'committed'
-- 'lapsed'                          the stage is not this overwrite's any more, or not whole: start again
-- 'stale', 'frozen'                 nothing was done: read the settings again and retry
local token, key_id, names = unpack(ARGV)
local list, stage, old = denylist_key(index), stage_key(), replaced_denylist_key()
if redis.call('GET', stage_owner_key()) ~= token then return 'lapsed' end
local refused = names_refused()
if refused then return refused end

local before, after = redis.call('HLEN', list), redis.call('HLEN', stage)
if after ~= tonumber(names) then return 'lapsed' end
if queued and after > 0 and redis.call('PERSIST', replay_list_key(token)) == 0 then return 'lapsed' end
if before > 0 then
  redis.call('RENAME', list, old)
  redis.call('UNLINK', old)
end
if after > 0 then redis.call('RENAME', stage, list) end
redis.call('DEL', stage_owner_key())
mark_denylist_write('', epoch)
if queued then enqueue('overwrite', { list = token }) end
add_audit_entry('overwrite', key_id, 'before', before, 'after', after)
return 'committed'
