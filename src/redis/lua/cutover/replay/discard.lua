#!lua
-- @include replay
-- Removes the oldest entries of the queue unsent.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  how many at most
-- ARGV[2]  the epoch under which nothing is queued any more: nothing is removed if a later switch has raised it
--
-- their kinds
local kinds = {}
if tonumber(redis.call('HGET', settings_key(), 'epoch') or '0') > tonumber(ARGV[2]) then return kinds end
for _, entry in ipairs(redis.call('XRANGE', replay_key(), '-', '+', 'COUNT', ARGV[1])) do
  local fields = queued_entry(entry[1])
  remove_entry(entry[1], fields)
  kinds[#kinds + 1] = fields.kind
end
return kinds
