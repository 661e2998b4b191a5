#!lua
-- @include adoptions
-- Removes the mark of a change that took no effect, or of the denylist that has ended in whatever way, or those that a
-- read has shown to be stored here.

-- user: '' for the denylist; the change's number, '' for none; when the read was drawn, ms: marks due by then are removed
-- as well.
local user, number, drawn_at = unpack(ARGV)
settle(user, number, tonumber(drawn_at))
if user == '' then move_barrier() end
