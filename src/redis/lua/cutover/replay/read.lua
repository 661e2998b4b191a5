#!lua flags=no-writes
-- @include store
-- The oldest entries of the queue.
--
-- {{id, sender, fields} …}    sender: who has begun to send it, '' if nobody has
local first, most = unpack(ARGV) -- first: an id, as XRANGE takes it
local entries = redis.call('XRANGE', replay_key(), first, '+', 'COUNT', most)
for _, entry in ipairs(entries) do
  table.insert(entry, 2, redis.call('HGET', replay_senders_key(), entry[1]) or '')
end
return entries
