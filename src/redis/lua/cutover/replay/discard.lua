#!lua flags=allow-oom
-- @include replay
-- Removes the oldest entries of the queue unsent; after the last one, the queue, and which keys were refused. For an
-- organization whose changes are no longer queued.
--
-- their kinds

-- How many at most; the epoch since which nothing is queued: nothing is removed if a later switch has raised it.
local most, epoch = unpack(ARGV)
local kinds = {}
if tonumber(epoch_in_force()) > tonumber(epoch) then return kinds end
for _, entry in ipairs(redis.call('XRANGE', replay_key(), '-', '+', 'COUNT', most)) do
  local fields = queued_entry(entry[1])
  remove_entry(entry[1], fields)
  kinds[#kinds + 1] = fields.kind
end
if #kinds < tonumber(most) then redis.call('DEL', replay_key(), replay_senders_key(), replay_refusals_key()) end
return kinds
