#!lua
-- @wait replicas
-- @include local_writes change
-- Contract 4.5, last step: the stage becomes the denylist.
--
-- 'committed'
-- 'lapsed'                          another overwrite has the stage, or none, or it is not whole: start again
-- 'frozen'                          nothing was done: read the settings again and retry
local token, key_id, names = unpack(ARGV)
if redis.call('GET', stage_owner_key()) ~= token then return 'lapsed' end
if names_refused() then return 'frozen' end

local before, after = redis.call('HLEN', denylist_key(index)), redis.call('HLEN', stage_key())
if after ~= tonumber(names) then return 'lapsed' end
if queued and after > 0 and redis.call('PERSIST', replay_list_key(token)) == 0 then return 'lapsed' end
commit_stage(index)
mark_denylist_write('', epoch)
if queued then enqueue('overwrite', { list = token }) end
add_audit_entry('overwrite', key_id, 'before', before, 'after', after)
return 'committed'
