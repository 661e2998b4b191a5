#!lua flags=allow-oom
-- @wait replicas
-- @include replay
-- Queues a retry of a change that is no longer in the queue, but of which a request may still take effect. Works also
-- where Redis is full: its instance replays nothing else before, and that is what frees memory.

-- fields: JSON {key, role, user, sealed, kind, change, accepted}, those of the entry; sender: of that request.
local fields, sender = unpack(ARGV)
local id = add_retry(cjson.decode(fields))
redis.call('HSET', replay_senders_key(), id, sender)
