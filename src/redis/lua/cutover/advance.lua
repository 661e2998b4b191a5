#!lua flags=allow-oom
-- @key any
-- @include cutover
-- Renews a switch under way, and takes it to its next phase once every instance has acknowledged the present one: from
-- stop to reads, from reads to its end, where the new mode is in force and changes are admitted again. The switch then
-- is on record as one that the audit trails lack (raise_epoch.lua).
--
-- KEYS[1]  <prefix>cutover
--
-- {'waiting', ids}    of the instances that have not acknowledged the phase
-- {'ready'}           all have; if it was to go on, the next phase has begun, or had before
-- {'lost'}            the switch was withdrawn, or Redis has lost the present phase, as in a failover

-- phase: the present one, as its caller knows; goes_on: 1 to go on, 0 only to renew; by: the command that switches.
local token, phase, lease_ms, goes_on, by = unpack(ARGV)
local state = cutover_state()
if state.token ~= token then
  if redis.call('HGET', KEYS[1], 'done') == token then return { 'ready' } end
  return { 'lost' }
end
if state.expires < now or state.phase == 'back' then
  withdraw(state)
  return { 'lost' }
end
if state.phase ~= phase then return { phase == 'stop' and 'ready' or 'lost' } end
redis.call('HSET', KEYS[1], 'until', now + lease_ms)
local missing = unacknowledged(state)
if #missing > 0 then return { 'waiting', missing } end
if goes_on ~= '1' then return { 'ready' } end
if state.phase == 'stop' then
  redis.call('HSET', KEYS[1], 'phase', 'reads')
else
  redis.call('HSET', KEYS[1], 'mode', state.to, 'since', now, 'by', by, 'done', token)
  redis.call('HDEL', KEYS[1], 'lost')
  redis.call('HSET', KEYS[1], 'history:' .. state.epoch, now .. ' ' .. state.to .. ' ' .. by)
  redis.call('HSET', KEYS[1], 'unaudited:' .. state.epoch, state.mode .. ' ' .. state.to)
  end_switch()
end
return { 'ready' }
