#!lua flags=allow-oom
-- @key any
-- @include cutover
-- Withdraws a switch under way; if reads have moved, that ends once every instance has confirmed.
--
-- KEYS[1]  <prefix>cutover
--
-- 'withdrawn'          the mode is as before, and changes are admitted
-- 'waiting'            for the instances to move reads back
-- 'done'               too late: the switch has been made
local token = ARGV[1]
local state = cutover_state()
if state.token == token then
  state = withdraw(state)
  return state.token and 'waiting' or 'withdrawn'
end
return redis.call('HGET', KEYS[1], 'done') == token and 'done' or 'withdrawn'
