#!lua
-- @include adoptions change
-- Begins a denylist change that is about to be forwarded. One is made at a time: its lease keeps others out.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this change
-- ARGV[2]  lease in ms
-- ARGV[3]  after how many ms its outcome must be visible
--
-- the change's number, or 0 while another change holds the lease
if not redis.call('SET', denylist_change_key(), ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
move_barrier()
local number = draw_number()
mark_unsettled('', number, tonumber(ARGV[3]))
return number
