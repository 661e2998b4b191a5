#!lua flags=no-writes
-- @key any
-- @include cutover
-- The whole state, for status and dashboard.
--
-- KEYS[1]  <prefix>cutover
--
-- {now, mode, epoch, since, by, to, phase, gap, verified, instances, history}
--                                instances: id, registration in JSON, time of the last heartbeat, its epoch, its phase,
--                                for each in turn; history: its epoch and `<since> <mode> <by>` for each switch made
local state = cutover_state()
local instances = {}
each_instance(function(id, registration, at, epoch, phase)
  for _, value in ipairs({ id, registration, string.format('%.0f', at), epoch, phase }) do
    instances[#instances + 1] = value
  end
end)
local history = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 8) == 'history:' then
    history[#history + 1] = string.sub(all[i], 9)
    history[#history + 1] = all[i + 1]
  end
end
return {
  now_ms(), state.mode, state.epoch, state.since, state.by, state.to, state.phase,
  redis.call('HGET', KEYS[1], 'gap') or '', redis.call('HGET', KEYS[1], 'verified') or '', instances, history,
}
