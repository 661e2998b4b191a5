#!lua flags=allow-oom
-- @wait replicas
-- @include replay
-- Puts a change that waits, or was set aside, at the end of the queue as a retry.
--
-- 1, or 0 if there is no such change
local id = ARGV[1]
local fields = queued_entry(id)
if fields then
  remove_entry(id, fields)
else
  local aside = redis.call('HGET', replay_aside_key(), id)
  if not aside then return 0 end
  fields = cjson.decode(aside)
  redis.call('HDEL', replay_aside_key(), id)
end
-- The entry of a change that was never retried has the time of acceptance as its id.
add_retry(fields, string.match(id, '^%d+'))
return 1
