#!lua
-- @include adoptions change
-- Marks a user, or the denylist, as changed by a request that is about to be forwarded. The mark stays until the change
-- has been adopted or refused, so that a killed instance leaves a trace of what is in doubt.
--
-- the change's number

-- user: '' for the denylist; wait_ms: after which any adoption settles the change; form: '1' if it is sent as a form,
-- which may bring a picture
local user, wait_ms, form = unpack(ARGV)
-- Before the request is sent, so that no copy is kept if this instance is killed.
if form == '1' then drop_copy(user) end
if user == '' then move_barrier() end
local number = draw_number()
mark_unsettled(user, number, wait_ms)
return number
