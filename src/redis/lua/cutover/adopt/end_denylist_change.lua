#!lua
-- @include adoptions
-- Ends a denylist change that was applied, took no effect, or is on record as a gap, and lets the next one begin.
local token, number = unpack(ARGV)
settle('', number, 0)
move_barrier()
if redis.call('GET', denylist_change_key()) == token then redis.call('DEL', denylist_change_key()) end
