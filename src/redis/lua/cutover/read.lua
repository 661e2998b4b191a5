#!lua flags=no-writes
-- @key any
-- @reply json
-- @include cutover
-- The whole state, for status and dashboard.
--
-- KEYS[1]  <prefix>cutover
--
-- {now, mode, epoch, since, by, to, phase, gap, verified, verifiedOn, instances, history}, by name; what there is not is ''
--   instances: by id {registration, at, epoch, phase}: its registration in JSON, the time of its last heartbeat, and
--   what it has acknowledged; history: by epoch `<since> <mode> <by>` for each switch made
local state = cutover_state()
local instances = {}
each_instance(function(id, registration, at, epoch, phase)
  instances[id] = { registration = registration, at = at, epoch = epoch, phase = phase }
end)
local history = {}
local all = by_name(redis.call('HGETALL', KEYS[1]))
for field, switch in pairs(all) do
  local epoch = string.match(field, '^history:(.*)$')
  if epoch then history[epoch] = switch end
end
return {
  now = now_ms(), mode = state.mode, epoch = state.epoch, since = state.since, by = state.by, to = state.to,
  phase = state.phase, gap = all.gap or '', verified = all.verified or '', verifiedOn = all['verified-on'] or '',
  instances = instances, history = history,
}
