#!lua
-- @wait replicas
-- @include local_writes change
-- Contract 4.4, for a part of the request: removes names from the denylist, except those in use.
--
-- ARGV[2…] two for each name: name, normalized name
--
-- {'frozen'}                        nothing was done: read the settings again and retry
-- {'removed', outcomes}             one for each name: deleted | in-use | absent
local key_id = ARGV[1]
if names_refused() then return { 'frozen' } end

local outcomes, deleted = {}, {}
for i = 2, #ARGV, 2 do
  local name, normalized_name = ARGV[i], ARGV[i + 1]
  local outcome = 'absent'
  -- "A username in use cannot be removed; it is skipped and returned." (contract 4.4.1)
  if holder_of(index, normalized_name) then
    outcome = 'in-use'
  elseif redis.call('HDEL', denylist_key(index), normalized_name) == 1 then
    outcome = 'deleted'
    deleted[#deleted + 1] = name
    mark_denylist_write(normalized_name, epoch)
    add_audit_entry('remove', key_id, 'username', name)
  end
  outcomes[#outcomes + 1] = outcome
end
if queued and #deleted > 0 then enqueue('remove', { usernames = deleted }) end
return { 'removed', outcomes }
