#!lua
-- @include adoptions names
-- Removes the mark of a change that took no effect, or those that a read has shown to be stored here.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  the change's number, '' for none
-- ARGV[3]  when the read was drawn, ms: marks due by then are removed as well; 0 for none
--
-- 'settled'
settle(ARGV[1], ARGV[2], tonumber(ARGV[3]))
return 'settled'
