#!lua
-- @include replay
-- Removes the oldest entries of the queue unsent.
--
-- their kinds

-- How many at most; the epoch under which nothing is queued any more: nothing is removed if a later switch has raised it.
local most, epoch = unpack(ARGV)
local kinds = {}
if tonumber(epoch_in_force()) > tonumber(epoch) then return kinds end
for _, entry in ipairs(redis.call('XRANGE', replay_key(), '-', '+', 'COUNT', most)) do
  local fields = queued_entry(entry[1])
  remove_entry(entry[1], fields)
  kinds[#kinds + 1] = fields.kind
end
return kinds
