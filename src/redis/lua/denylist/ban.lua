#!lua
-- @wait replicas
-- @include local_writes change
-- Contract 4.3, for a part of the request: denies each name and renames its user, both or neither.
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
  local outcome = 'added'
  local user = false
  -- "A name that is already denied is skipped." (contract 4.3.3)
  if is_denied(index, normalized_name) then
    outcome = 'skipped'
  else
    user = holder_of(index, normalized_name)
    if user then
      if normalized_replacement == '' or is_denied(index, normalized_replacement) then
        outcome = 'replacement-denied'
      elseif is_staged(normalized_replacement) then
        break
      elseif holder_of(index, normalized_replacement) then
        outcome = 'replacement-in-use'
      end
    end
  end
  if outcome == 'added' then
    redis.call('HSET', denylist_key(index), normalized_name, spelling_of(name, normalized_name))
    mark_denylist_write(normalized_name, epoch)
    denied[#denied + 1] = { name, replacement }
    add_audit_entry('ban', key_id, 'username', name)
    -- "If a name is in use, its user gets the replacement instead." (contract 4.3.2)
    if user then
      local profile = profile_key(user)
      local from = redis.call('HGET', profile, 'u') or name
      release(index, normalized_name)
      claim(index, normalized_replacement, user)
      redis.call('HSET', profile, 'u', replacement, 't', now, 'b', epoch)
      add_audit_entry('rename', key_id, 'from', from, 'to', replacement, 'user', user)
    end
  end
  outcomes[#outcomes + 1] = outcome
end
if queued and #denied > 0 then enqueue('ban', { replacements = denied }) end
return { 'banned', outcomes }
