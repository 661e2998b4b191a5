#!lua
-- @include adoptions change
-- Marks a user as changed by a request that is about to be forwarded. The mark stays until the change has been adopted
-- or refused, so that a killed instance leaves a trace of what is in doubt.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  after how many ms any adoption settles the change
--
-- the change's number
local number = draw_number()
mark_unsettled(ARGV[1], number, tonumber(ARGV[2]))
return number
