#!lua flags=allow-oom
-- @key any
-- @reply json
-- @include cutover
-- Keeps an instance registered, records what it has acknowledged, and returns the mode.
--
-- KEYS[1]  <prefix>cutover
--
-- {kind, ...}, by name
--   ok                mode, epoch, since, to, phase, lost: mode '' if none is stored: where the epoch is above 0, it was
--                     lost; epoch the highest that any instance has seen; to, phase '' if no switch is under way; lost
--                     above 0 if Redis has lost a switch, and no mode has been set since
--   needs-legacy      mode; refused: an instance without the legacy service, in a mode other than native
--   needs-replay      refused: an instance that cannot replay, in the mode reverse
--   native-instances  ids; refused: no mode is stored, and instances without the legacy service serve

-- The instance and its registration in JSON; the highest epoch that it has seen, and since when the mode held that it saw
-- last; the phase of the switch that it has acknowledged, - for none, unsaved if it cannot because gaps are not on
-- record; and the authority that it vouches for, legacy or redis: none with its first heartbeat, when it has admitted no
-- change yet, and served no read.
local id, registered, seen, since, phase, authority = unpack(ARGV)
local registration = cjson.decode(registered)
-- A migration serves no requests.
local is_bridge = registration.kind == 'bridge'
local state = settled_state()

local function begin_in_shadow(epoch)
  redis.call('HSET', KEYS[1], 'mode', 'shadow', 'epoch', epoch, 'since', now, 'by', 'default')
  redis.call('HSET', KEYS[1], 'history:' .. epoch, now .. ' shadow default')
  state = cutover_state()
end

if authority == 'none' then
  -- Redis refuses by its epoch whatever such an instance still tries to write.
  local is_native = state.mode == '' or state.mode == 'native'
  local natives = {}
  each_instance(function(other, known, at)
    if is_native and not state.token and now - at > 3600000 and at > (tonumber(state.since) or 0) then
      forget_instance(other)
    elseif not string.find(known, '"legacy":true', 1, true) then
      natives[#natives + 1] = other
    end
  end)
  if is_bridge then
    if registration.legacy and state.mode == '' and state.epoch == 0 then
      if #natives > 0 then return { kind = 'native-instances', ids = natives } end
      begin_in_shadow(0)
    elseif not registration.legacy and not is_native then
      return { kind = 'needs-legacy', mode = state.mode }
    elseif not registration.legacy and state.token then
      return { kind = 'needs-legacy', mode = state.to }
    end
    if (state.mode == 'reverse' or state.to == 'reverse') and not registration.replay then
      return { kind = 'needs-replay' }
    end
  end
  seen, phase = math.max(state.epoch, state.lost), state.token and state.phase or '-'
elseif state.mode ~= '' then
  -- Redis has come back in an earlier state, before the last switch or during it: then its history does not have that.
  -- Instances that start later cannot know of the switch, and which mode holds now is for the operator to say.
  local epoch = tonumber(seen)
  local has_lost_end = epoch == state.epoch and tonumber(since) > (tonumber(state.since) or 0)
    and redis.call('HEXISTS', KEYS[1], 'history:' .. seen) == 0
  if epoch > math.max(state.epoch, state.lost) or has_lost_end then redis.call('HSET', KEYS[1], 'lost', seen) end
elseif is_bridge then
  -- Redis has lost its data. Where it was the authority, only the operator can say who is now.
  if authority == 'legacy' and state.epoch == 0 then
    begin_in_shadow(seen)
  elseif tonumber(seen) > state.epoch then
    redis.call('HSET', KEYS[1], 'epoch', seen)
  end
end

redis.call('HSETNX', KEYS[1], 'instance:' .. id, registered)
redis.call('HSET', KEYS[1], 'beat:' .. id, now .. ' ' .. seen .. ' ' .. phase)
-- This heartbeat may have been the last one that a withdrawal waited for.
state = settled_state()
return {
  kind = 'ok', mode = state.mode, epoch = math.max(state.epoch, state.lost), since = state.since, to = state.to,
  phase = state.phase, lost = state.lost,
}
