#!lua flags=allow-oom
-- @wait replicas
-- @include replay
-- Takes an entry that the legacy service refuses out of the queue, for the operator to decide about. Its file and its
-- list are not kept: a retry sends what is stored then.
--
-- 1, or 0 if it is not in the queue
local id, status, reason = unpack(ARGV) -- status: of the legacy service, 0 if it never answered
local fields = queued_entry(id)
if not fields then return 0 end
remove_entry(id, fields)
fields.status, fields.reason, fields.at = status, reason, now_ms()
redis.call('HSET', replay_aside_key(), id, cjson.encode(fields))
return 1
