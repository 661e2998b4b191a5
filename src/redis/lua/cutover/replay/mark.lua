#!lua
-- @include replay
-- @wait replicas
-- Records who is about to send an entry, unless another sender has begun to meanwhile. A replica must have this before
-- the entry is sent: otherwise, after a failover, another instance would send the entry as if nobody had.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  id of the entry
-- ARGV[2]  the sender
-- ARGV[3]  who had begun to send it when the sender looked, '' for nobody
--
-- who is to send it now, '' if it is not in the queue
if not queued_entry(ARGV[1]) then return '' end
local known = redis.call('HGET', replay_senders_key(), ARGV[1]) or ''
if known ~= ARGV[2] and known ~= ARGV[3] then return known end
redis.call('HSET', replay_senders_key(), ARGV[1], ARGV[2])
return ARGV[2]
