#!lua
-- @include store
-- From here on refuses changes of this organization that were admitted under a lower epoch (lib/change.lua). One that a
-- migration is loading has no settings yet: the migration loses it, and resumes once it is run again.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  epoch
-- ARGV[2]  once the switch has been made, for the audit trail: the mode before; else ''
-- ARGV[3]  the mode after
--
-- the epoch in force: this one or a higher one; 0 if the organization does not exist
if redis.call('EXISTS', settings_key()) == 0 then
  local run = string.match(redis.call('GET', loading_key()) or '', '^[^\n]+')
  if run then redis.call('SET', loading_key(), run .. '\n' .. ARGV[1]) end
  return 0
end
local current = tonumber(redis.call('HGET', settings_key(), 'epoch') or '0')
if ARGV[2] ~= '' then add_audit_entry('cutover', 'operator', 'from', ARGV[2], 'to', ARGV[3], 'number', ARGV[1]) end
if tonumber(ARGV[1]) <= current then return current end
redis.call('HSET', settings_key(), 'epoch', ARGV[1])
return tonumber(ARGV[1])
