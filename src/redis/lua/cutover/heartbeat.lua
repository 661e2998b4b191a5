#!lua flags=allow-oom
-- @key any
-- @reply json
-- @include cutover
-- Keeps an instance registered, records what it has acknowledged, and returns the mode.
--
-- KEYS[1]  <prefix>cutover
--
-- {kind, ...}, by name
--   ok                mode, epoch, since, to, phase: mode '' if none is stored; to, phase '' if no switch is under way
--   needs-legacy      mode; refused: an instance without the legacy service, in a mode other than native
--   needs-replay      refused: an instance that cannot replay, in the mode reverse
--   native-instances  ids; refused: no mode is stored, and instances without the legacy service serve

-- The instance and its registration in JSON; the highest epoch that it has seen, and the phase of the switch that it has
-- acknowledged, - for none.
local id, registered, seen, phase = unpack(ARGV, 1, 4)
-- It has admitted no change yet, and served no read.
local is_first = ARGV[5] == '1'
local state = settled_state()

if is_first then
  -- Redis refuses by its epoch whatever such an instance still tries to write.
  local is_native = state.mode == '' or state.mode == 'native'
  local natives = {}
  each_instance(function(other, registration, at)
    if is_native and not state.token and now - at > 3600000 and at > (tonumber(state.since) or 0) then
      forget_instance(other)
    elseif not string.find(registration, '"legacy":true', 1, true) then
      natives[#natives + 1] = other
    end
  end)
  local registration = cjson.decode(registered)
  -- A migration serves no requests.
  if registration.kind == 'bridge' then
    if registration.legacy and state.mode == '' then
      if #natives > 0 then return { kind = 'native-instances', ids = natives } end
      redis.call('HSET', KEYS[1], 'mode', 'shadow', 'since', now, 'by', 'default', 'history:0', now .. ' shadow default')
      state = cutover_state()
    elseif not registration.legacy and not is_native then
      return { kind = 'needs-legacy', mode = state.mode }
    elseif not registration.legacy and state.token then
      return { kind = 'needs-legacy', mode = state.to }
    end
    if (state.mode == 'reverse' or state.to == 'reverse') and not registration.replay then
      return { kind = 'needs-replay' }
    end
  end
  seen, phase = state.epoch, state.token and state.phase or '-'
end

redis.call('HSETNX', KEYS[1], 'instance:' .. id, registered)
redis.call('HSET', KEYS[1], 'beat:' .. id, now .. ' ' .. seen .. ' ' .. phase)
-- This heartbeat may have been the last one that a withdrawal waited for.
state = settled_state()
return {
  kind = 'ok', mode = state.mode, epoch = state.epoch, since = state.since, to = state.to, phase = state.phase,
}
