#!lua
-- @key any
-- @include cutover
-- Renews a switch under way, and takes it to its next phase once every instance has acknowledged the present one: from
-- stop to reads, from reads to its end, where the new mode is in force and changes are admitted again.
--
-- KEYS[1]  <prefix>cutover
-- ARGV[1]  token of the switch
-- ARGV[2]  the phase that it is in, as its caller knows
-- ARGV[3]  lease in ms
-- ARGV[4]  1 to go on, 0 to renew only
-- ARGV[5]  the command that made the switch, for the record
--
-- {'waiting', ids}    of the instances that have not acknowledged the phase
-- {'ready'}           all have; with 1: the next phase has begun, or had before
-- {'lost'}            the switch was withdrawn
local now = tonumber(now_ms())
local state = cutover_state()
if state.token ~= ARGV[1] then
  if redis.call('HGET', KEYS[1], 'done') == ARGV[1] then return { 'ready' } end
  return { 'lost' }
end
if state.expires < now or state.phase == 'back' then
  withdraw(state, now)
  return { 'lost' }
end
if state.phase ~= ARGV[2] then return { 'ready' } end
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[3]))
local missing = unacknowledged(state, now)
if #missing > 0 then return { 'waiting', missing } end
if ARGV[4] ~= '1' then return { 'ready' } end
if state.phase == 'stop' then
  redis.call('HSET', KEYS[1], 'phase', 'reads')
else
  redis.call('HSET', KEYS[1], 'mode', state.to, 'since', string.format('%.0f', now), 'by', ARGV[5], 'done', ARGV[1])
  redis.call('HSET', KEYS[1], 'history:' .. state.epoch, string.format('%.0f', now) .. ' ' .. state.to .. ' ' .. ARGV[5])
  end_switch()
end
return { 'ready' }
