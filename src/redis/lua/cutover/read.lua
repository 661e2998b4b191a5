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
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 8) == 'history:' then history[string.sub(all[i], 9)] = all[i + 1] end
end
return {
  now = now_ms(), mode = state.mode, epoch = state.epoch, since = state.since, by = state.by, to = state.to,
  phase = state.phase, gap = redis.call('HGET', KEYS[1], 'gap') or '',
  verified = redis.call('HGET', KEYS[1], 'verified') or '',
  verifiedOn = redis.call('HGET', KEYS[1], 'verified-on') or '', instances = instances, history = history,
}
