#!lua
-- @include replay
-- @wait replicas
-- Removes an entry that the legacy service has. A replica must have this before the entries that wait for it are sent:
-- otherwise, after a failover, it would be sent again after them.
--
-- 1, or 0 if it is not in the queue

-- The public id of the API key that the legacy service has accepted, '' if nothing had to be sent, and where it shows
-- the file that the entry uploaded, '' if that is not known.
local id, accepted_key, picture_url = unpack(ARGV)
if accepted_key ~= '' and redis.call('EXISTS', replay_refusals_key()) == 1 then
  redis.call('HDEL', replay_refusals_key(), accepted_key, '')
  if redis.call('EXISTS', replay_refusals_key()) == 1 then redis.call('HSET', replay_refusals_key(), '', now_ms()) end
end
local fields = queued_entry(id)
if not fields then return 0 end
local picture = remove_entry(id, fields).picture
local profile = profile_key(fields.user)
if picture_url ~= '' and picture and picture[1] == 'file' and redis.call('HGET', profile, 'pf') == picture[2] then
  redis.call('HSET', profile, 'po', picture_url)
end
return 1
