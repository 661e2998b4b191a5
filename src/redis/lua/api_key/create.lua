#!lua
-- @wait replicas
-- @include store
-- Stores an API key of the organization. It counts as made here (b), so that no later migration changes it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  SHA-256 of the key, hex
-- ARGV[2]  public id
-- ARGV[3]  role: player | admin
-- ARGV[4]  user, '' for none
-- ARGV[5]  client label, '' for none
-- ARGV[6]  expiry in ms, '' for none
--
-- 'created', 'unknown-organization' or 'exists'
local record = api_key_key(ARGV[1])
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
if redis.call('EXISTS', record) == 1 then return 'exists' end
redis.call('HSET', record, 'i', ARGV[2], 'r', ARGV[3], 't', now_ms(), 'b', '1')
for position, field in ipairs({ 'u', 'c', 'e' }) do
  local value = ARGV[position + 3]
  if value ~= '' then redis.call('HSET', record, field, value) end
end
redis.call('HSET', api_key_ids_key(), ARGV[2], ARGV[1])
return 'created'
