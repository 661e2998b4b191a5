#!lua
-- @include replay
-- @wait replicas
-- Queues a retry of a change that is not in the queue any more, but of which a request may still take effect.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  the listing of the organization
-- ARGV[2]  JSON {key, role, user, sealed, kind, change}: the fields of the entry
-- ARGV[3]  the sender of that request
--
-- id of the retry
if ARGV[1] ~= listing_now() then return unlisted() end
local id = add_retry(cjson.decode(ARGV[2]))
redis.call('HSET', replay_senders_key(), id, ARGV[3])
return id
