#!lua
-- @wait replicas
-- Stores an API key of the organization. It counts as made here (b), so that no later migration changes it.
local sha256, key_id, role = unpack(ARGV)
-- The others are '' for none; the expiry is in ms.
local optional = { u = ARGV[4], c = ARGV[5], e = ARGV[6] }
local record = api_key_key(sha256)
redis.call('HSET', record, 'i', key_id, 'r', role, 't', now_ms(), 'b', '1')
for field, value in pairs(optional) do
  if value ~= '' then redis.call('HSET', record, field, value) end
end
redis.call('HSET', api_key_ids_key(), key_id, sha256)
