#!lua
-- @include adoptions names
-- Ends a denylist change that was applied, took no effect, or is on record as a gap, and lets the next one begin.
--
-- 'ended', or 'lapsed' where the lease was lost before
local token, number = unpack(ARGV)
local is_ours = redis.call('GET', denylist_change_key()) == token
settle('', number, 0)
move_barrier()
if not is_ours then return 'lapsed' end
redis.call('DEL', denylist_change_key())
return 'ended'
