#!lua
-- @wait replicas
-- @include local_writes change
-- Contract 4.3, for a part of the request: denies each name, unless it is denied already, and renames its user, both or
-- neither.
--
-- ARGV[2…] four for each name: name, normalized name, replacement, normalized replacement ('' if this same request
--          denies the replacement, whatever the order of its properties)
--
-- {'frozen'}                        nothing was done: read the settings again and retry
-- {'banned', outcomes}              one for each name: added | skipped | replacement-in-use |
--                                   replacement-denied; fewer than names where a denylist overwrite has not
--                                   decided about a replacement yet: retry with the rest
local key_id = ARGV[1]
if names_refused() then return { 'frozen' } end

local outcomes, denied = {}, {}
local now = now_ms()
for i = 2, #ARGV, 4 do
  local name, normalized_name, replacement, normalized_replacement = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  -- "A name that is already denied is skipped." (contract 4.3.3)
  local outcome = is_denied(index, normalized_name) and 'skipped' or 'added'
  -- One that is in use all the same, as after a migration, has to be replaced for 4.5.3 to hold. Not if the change is
  -- queued: the legacy service may skip it, and would keep the old name.
  local user = (outcome == 'added' or not queued) and holder_of(index, normalized_name)
  local refusal
  if user then
    if normalized_replacement == '' or is_denied(index, normalized_replacement) then
      refusal = 'replacement-denied'
    elseif is_staged(normalized_replacement) then
      break
    elseif holder_of(index, normalized_replacement) then
      refusal = 'replacement-in-use'
    end
  end
  if outcome == 'added' and not refusal then
    redis.call('HSET', denylist_key(index), normalized_name, spelling_of(name, normalized_name))
    mark_denylist_write(normalized_name, epoch)
    denied[#denied + 1] = { name, replacement }
    add_audit_entry('ban', key_id, 'username', name)
  end
  -- "If a name is in use, its user gets the replacement instead." (contract 4.3.2)
  if user and not refusal then
    local profile = profile_key(user)
    local from = redis.call('HGET', profile, 'u') or name
    release(index, normalized_name)
    claim(index, normalized_replacement, user)
    redis.call('HSET', profile, 'u', replacement, 't', now, 'b', epoch)
    add_audit_entry('rename', key_id, 'from', from, 'to', replacement, 'user', user)
  end
  outcomes[#outcomes + 1] = outcome == 'added' and refusal or outcome
end
if queued and #denied > 0 then enqueue('ban', { replacements = denied }) end
return { 'banned', outcomes }
