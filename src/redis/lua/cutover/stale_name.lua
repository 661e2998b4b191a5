#!lua
-- @include adoptions
-- Looks, in a part of them, for a name whose ban was adopted after a snapshot was opened, and which a user has: the user
-- comes from that snapshot.
--
-- {cursor of the next call, 0 at the end; a normalized name, '' if there is none}
local index, cursor, snapshot_at = ARGV[1], ARGV[2], tonumber(ARGV[3])
local found = redis.call('HSCAN', adoptions_key(), cursor, 'MATCH', 'name:*', 'COUNT', 500)
for i = 1, #found[2], 2 do
  local name, adopted_at = string.sub(found[2][i], 6), tonumber(found[2][i + 1])
  if adopted_at >= snapshot_at and is_denied(index, name) and holder_of(index, name) then return { found[1], name } end
end
return { found[1], '' }
