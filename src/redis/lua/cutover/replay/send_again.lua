#!lua
-- @include replay
-- @wait replicas
-- Queues a retry of a change that is not in the queue any more, but of which a request may still take effect.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  JSON {key, role, user, sealed, kind, change}: the fields of the entry
-- ARGV[2]  the sender of that request
--
-- id of the retry
local id = add_retry(cjson.decode(ARGV[1]))
redis.call('HSET', replay_senders_key(), id, ARGV[2])
return id
