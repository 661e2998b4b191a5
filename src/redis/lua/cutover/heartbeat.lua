#!lua
-- @key any
-- @include cutover
-- Keeps an instance registered, records what it has acknowledged, and returns the mode.
--
-- KEYS[1]  <prefix>cutover
-- ARGV[1]  id of the instance
-- ARGV[2]  its registration, in JSON
-- ARGV[3]  the highest epoch that it has seen
-- ARGV[4]  the phase of the switch that it has acknowledged, - for none
-- ARGV[5]  1 for its first heartbeat: it has admitted no change yet, and served no read
-- ARGV[6]  1 if it can reach the legacy service, 0 if it cannot, - for a tool, which serves no requests
--
-- {'ok', mode, epoch, since, to, phase}    mode '' if none is stored; to and phase '' if no switch is under way
-- {'needs-legacy', mode}                   refused: an instance without the legacy service, in a mode other than native
-- {'needs-replay'}                         refused: an instance that cannot replay, in the mode reverse
-- {'native-instances', ids}                refused: no mode is stored, and instances without the legacy service serve
local now = tonumber(now_ms())
local id, is_first = ARGV[1], ARGV[5] == '1'
local state = settled_state(now)
local seen, phase = ARGV[3], ARGV[4]

if is_first then
  -- Redis refuses by its epoch whatever such an instance still tries to write.
  local is_native = state.mode == '' or state.mode == 'native'
  local natives = {}
  each_instance(function(other, registration, at)
    if is_native and not state.token and now - at > 3600000 and at > (tonumber(state.since) or 0) then
      forget_instance(other)
    elseif other ~= id and not string.find(registration, '"legacy":true', 1, true) then
      natives[#natives + 1] = other
    end
  end)
  if ARGV[6] == '1' then
    if state.mode == '' then
      if #natives > 0 then return { 'native-instances', natives } end
      local since = string.format('%.0f', now)
      redis.call('HSET', KEYS[1], 'mode', 'shadow', 'since', since, 'by', 'default', 'history:0', since .. ' shadow default')
      state = cutover_state()
    end
  elseif ARGV[6] == '0' and not is_native then
    return { 'needs-legacy', state.mode }
  elseif ARGV[6] == '0' and state.token then
    return { 'needs-legacy', state.to }
  end
  if ARGV[6] ~= '-' and (state.mode == 'reverse' or state.to == 'reverse') and cjson.decode(ARGV[2]).replay == false then
    return { 'needs-replay' }
  end
  seen, phase = state.epoch, state.token and state.phase or '-'
end

redis.call('HSETNX', KEYS[1], 'instance:' .. id, ARGV[2])
redis.call('HSET', KEYS[1], 'beat:' .. id, string.format('%.0f', now) .. ' ' .. seen .. ' ' .. phase)
-- This heartbeat may have been the last one that a withdrawal waited for.
state = settled_state(now)
return { 'ok', state.mode, state.epoch, state.since, state.to, state.phase }
