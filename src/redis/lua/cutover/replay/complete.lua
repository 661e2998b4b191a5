#!lua flags=allow-oom
-- @wait replicas
-- @include replay
-- Removes an entry that the legacy service has. A replica must have this before the entries that wait for it are sent:
-- otherwise, after a failover, it would be sent again after them.

-- The public id of the API key that the legacy service has accepted, '' if nothing had to be sent; the picture file that
-- was uploaded, and where the service shows it, '' if that is not known.
local id, accepted_key, file, url = unpack(ARGV)
if accepted_key ~= '' and redis.call('EXISTS', replay_refusals_key()) == 1 then
  redis.call('HDEL', replay_refusals_key(), accepted_key, '')
  if redis.call('EXISTS', replay_refusals_key()) == 1 then redis.call('HSET', replay_refusals_key(), '', now_ms()) end
end
local fields = queued_entry(id)
if not fields then return end
remove_entry(id, fields)
local profile = profile_key(fields.user)
if file ~= '' and redis.call('HGET', profile, 'pf') == file then
  redis.call('HSET', profile, 'po', url, 'pt', now_ms())
end
