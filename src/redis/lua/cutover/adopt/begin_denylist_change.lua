#!lua
-- @include adoptions change
-- Begins a denylist change that is about to be forwarded. One is made at a time: its lease keeps others out.
--
-- the change's number, or 0 while another change holds the lease
local token, lease_ms, wait_ms = unpack(ARGV) -- wait_ms: after which its outcome must be visible
if not redis.call('SET', denylist_change_key(), token, 'NX', 'PX', lease_ms) then return 0 end
move_barrier()
local number = draw_number()
mark_unsettled('', number, wait_ms)
return number
