#!lua
-- @include replay
-- @wait replicas
-- Queues a retry of a change that is not in the queue any more, but of which a request may still take effect.
--
-- id of the retry

-- fields: JSON {key, role, user, sealed, kind, change}, those of the entry; sender: of that request.
local fields, sender = unpack(ARGV)
local id = add_retry(cjson.decode(fields))
redis.call('HSET', replay_senders_key(), id, sender)
return id
