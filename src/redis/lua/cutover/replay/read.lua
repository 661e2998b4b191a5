#!lua flags=no-writes
-- @include store
-- The oldest entries of the queue.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  first id, as XRANGE takes it
-- ARGV[2]  how many at most
--
-- {{id, sender, fields} …}    sender: who has begun to send it, '' if nobody has
local entries = redis.call('XRANGE', replay_key(), ARGV[1], '+', 'COUNT', ARGV[2])
for _, entry in ipairs(entries) do
  table.insert(entry, 2, redis.call('HGET', replay_senders_key(), entry[1]) or '')
end
return entries
