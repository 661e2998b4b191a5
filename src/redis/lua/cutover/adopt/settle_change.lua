#!lua
-- @include adoptions
-- Removes the mark of a change that took no effect, or those that a read has shown to be stored here.

-- The change's number, '' for none; when the read was drawn, ms: marks due by then are removed as well. Of an upload that
-- was refused: the copy of the picture before it, and the URL that it came from.
local user, number, drawn_at, file, url = unpack(ARGV)
settle(user, number, tonumber(drawn_at))
-- With another change in progress, there may be another picture at the URL.
if url and redis.call('HEXISTS', unsettled_key(), user) == 0 and redis.call('HGET', profile_key(user), 'pf') == file then
  redis.call('HSETNX', profile_key(user), 'po', url)
end
