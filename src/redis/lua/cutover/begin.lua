#!lua
-- @key any
-- @include cutover
-- Begins a switch: draws the next epoch, and asks all instances to stop admitting changes.
--
-- KEYS[1]  <prefix>cutover
-- ARGV[1]  token of this switch
-- ARGV[2]  mode that it starts from, as its caller has seen it
-- ARGV[3]  mode to switch to
-- ARGV[4]  lease in ms
--
-- {'begun', epoch}
-- {'busy', to}         another switch is under way
-- {'changed', mode}    the mode is another one
local now = tonumber(now_ms())
local state = settled_state(now)
if state.token == ARGV[1] then return { 'begun', state.epoch } end
if state.token then return { 'busy', state.to } end
local mode = state.mode == '' and 'native' or state.mode
if mode ~= ARGV[2] then return { 'changed', mode } end
-- After a failover instances may have seen more than this server has.
local epoch = state.epoch
each_instance(function(_, _, _, seen) epoch = math.max(epoch, seen) end)
epoch = epoch + 1
redis.call('HSET', KEYS[1], 'mode', mode, 'epoch', epoch, 'to', ARGV[3], 'phase', 'stop', 'token', ARGV[1],
  'until', string.format('%.0f', now + ARGV[4]))
return { 'begun', epoch }
