#!lua
-- @include adoptions names
-- Removes the mark of a change that took no effect.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  the change's number
settle(ARGV[1], ARGV[2], 0)
return 'settled'
