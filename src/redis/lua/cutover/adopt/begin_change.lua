#!lua
-- @include adoptions change
-- Marks a user as changed by a request that is about to be forwarded. The mark stays until the change has been adopted
-- or refused, so that a killed instance leaves a trace of what is in doubt.
--
-- the change's number
local user, wait_ms = unpack(ARGV) -- after which any adoption settles the change
local number = draw_number()
mark_unsettled(user, number, wait_ms)
return number
