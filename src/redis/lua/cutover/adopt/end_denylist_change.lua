#!lua
-- @include adoptions names
-- Ends a denylist change that was applied, took no effect, or is on record as a gap, and lets the next one begin.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this change
-- ARGV[2]  its number
--
-- 'ended', or 'lapsed' where the lease was lost before
local is_ours = redis.call('GET', denylist_change_key()) == ARGV[1]
settle('', ARGV[2], 0)
move_barrier()
if not is_ours then return 'lapsed' end
redis.call('DEL', denylist_change_key())
return 'ended'
