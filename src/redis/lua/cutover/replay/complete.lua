#!lua
-- @include replay
-- @wait replicas
-- Removes an entry that the legacy service has. A replica must have this before the entries that wait for it are sent:
-- otherwise, after a failover, it would be sent again after them.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  its id
-- ARGV[2]  public id of the API key that the legacy service has accepted, '' if nothing had to be sent
-- ARGV[3]  where the legacy service shows the file that the entry uploaded, '' if that is not known
--
-- 1, or 0 if it is not in the queue
if ARGV[2] ~= '' and redis.call('EXISTS', replay_refusals_key()) == 1 then
  redis.call('HDEL', replay_refusals_key(), ARGV[2], '')
  if redis.call('EXISTS', replay_refusals_key()) == 1 then redis.call('HSET', replay_refusals_key(), '', now_ms()) end
end
local fields = queued_entry(ARGV[1])
if not fields then return 0 end
local picture = remove_entry(ARGV[1], fields).picture
local profile = profile_key(fields.user)
if ARGV[3] ~= '' and picture and picture[1] == 'file' and redis.call('HGET', profile, 'pf') == picture[2] then
  redis.call('HSET', profile, 'po', ARGV[3])
end
return 1
