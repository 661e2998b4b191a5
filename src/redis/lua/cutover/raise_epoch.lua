#!lua flags=allow-oom
-- From here on refuses changes of this organization that were admitted under a lower epoch (lib/change.lua). One that a
-- migration is loading has no settings yet: the migration loses it, and resumes once it is run again.
--
-- the epoch in force: this one or a higher one; 0 if the organization does not exist
local epoch, from, to = unpack(ARGV) -- the modes, once the switch has been made, for the audit trail; else ''
if redis.call('EXISTS', settings_key()) == 0 then
  local run = string.match(redis.call('GET', loading_key()) or '', '^[^\n]+')
  if run then redis.call('SET', loading_key(), run .. '\n' .. epoch) end
  return 0
end
local current = tonumber(epoch_in_force())
local audited = tonumber(redis.call('HGET', settings_key(), 'audited') or '0')
if from ~= '' and tonumber(epoch) > audited then
  add_audit_entry('cutover', 'operator', 'from', from, 'to', to, 'number', epoch)
  redis.call('HSET', settings_key(), 'audited', epoch)
end
if tonumber(epoch) <= current then return current end
redis.call('HSET', settings_key(), 'epoch', epoch)
return tonumber(epoch)
