#!lua
-- @include replay
-- @wait replicas
-- Puts a change that waits, or was set aside, at the end of the queue as a retry.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  the listing of the organization
-- ARGV[2]  its id
--
-- 1, or 0 if there is no such change
if ARGV[1] ~= listing_now() then return unlisted() end
local fields = queued_entry(ARGV[2])
if fields then
  remove_entry(ARGV[2], fields)
else
  local aside = redis.call('HGET', replay_aside_key(), ARGV[2])
  if not aside then return 0 end
  fields = cjson.decode(aside)
  redis.call('HDEL', replay_aside_key(), ARGV[2])
end
add_retry(fields)
return 1
