#!lua flags=no-writes
-- @key any
-- @include cutover
-- The whole state, for people.
--
-- KEYS[1]  <prefix>cutover
--
-- {now, mode, epoch, since, by, to, phase, gap, instances}    instances: id, registration in JSON, time of the last
--                                                             heartbeat, its epoch, its phase; for each in turn
local state = cutover_state()
local instances = {}
each_instance(function(id, registration, at, epoch, phase)
  for _, value in ipairs({ id, registration, string.format('%.0f', at), epoch, phase }) do
    instances[#instances + 1] = value
  end
end)
return {
  now_ms(), state.mode, state.epoch, state.since, state.by, state.to, state.phase,
  redis.call('HGET', KEYS[1], 'gap') or '', instances,
}
