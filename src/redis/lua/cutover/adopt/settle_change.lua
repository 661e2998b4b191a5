#!lua
-- @include adoptions
-- Removes the mark of a change that took no effect, or those that a read has shown to be stored here.

-- The change's number, '' for none; when the read was drawn, ms: marks due by then are removed as well.
local user, number, drawn_at = unpack(ARGV)
settle(user, number, tonumber(drawn_at))
