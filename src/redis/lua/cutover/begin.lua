#!lua flags=allow-oom
-- @key any
-- @include cutover
-- Begins a switch: draws the next epoch, and asks all instances to stop admitting changes.
--
-- KEYS[1]  <prefix>cutover
--
-- {'begun', epoch}
-- {'busy', to}         another switch is under way
-- {'changed', mode}    the mode is another one
local token, from, to, lease_ms = unpack(ARGV) -- from: the mode as the caller has seen it
local state = settled_state()
if state.token == token then return { 'begun', state.epoch } end
if state.token then return { 'busy', state.to } end
local mode = state.mode == '' and 'native' or state.mode
if mode ~= from then return { 'changed', mode } end
local epoch = math.max(state.epoch, state.lost)
-- Builds that record no lost switch have only their heartbeats to say what they have seen.
each_instance(function(_, _, _, seen) epoch = math.max(epoch, seen) end)
epoch = epoch + 1
-- One that was lost, or a switch, stays so until another mode is in force (heartbeat.lua).
if state.mode == '' and state.epoch == 0 then redis.call('HSET', KEYS[1], 'mode', mode) end
redis.call('HSET', KEYS[1], 'epoch', epoch, 'to', to, 'phase', 'stop', 'token', token,
  'until', now + lease_ms)
return { 'begun', epoch }
