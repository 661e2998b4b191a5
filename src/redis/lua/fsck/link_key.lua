#!lua
-- @include keys
-- Lists an API key under its public id.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  SHA-256 of the key, hex
--
-- 'mended', 'changed', or 'shared' where another key has the id
local keys = api_key_ids_key()
local id = redis.call('HGET', api_key_key(ARGV[1]), 'i')
if not id then return 'changed' end
local listed = redis.call('HGET', keys, id)
if listed == ARGV[1] then return 'changed' end
if listed and redis.call('HGET', api_key_key(listed), 'i') == id then return 'shared' end
redis.call('HSET', keys, id, ARGV[1])
return 'mended'
