#!lua
-- @include replay
-- @wait replicas
-- Takes an entry that the legacy service refuses out of the queue, for the operator to decide about. Its file and its
-- list are not kept: a retry sends what is stored then.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  id of the entry
-- ARGV[2]  the legacy service's status, 0 if it never answered
-- ARGV[3]  why, in one line
--
-- 1, or 0 if it is not in the queue
local fields = queued_entry(ARGV[1])
if not fields then return 0 end
remove_entry(ARGV[1], fields)
fields.status, fields.reason, fields.at = ARGV[2], ARGV[3], now_ms()
redis.call('HSET', replay_aside_key(), ARGV[1], cjson.encode(fields))
return 1
