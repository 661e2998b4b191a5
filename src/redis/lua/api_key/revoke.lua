#!lua flags=allow-oom
-- @wait replicas
-- Revokes an API key, from the very next request on. The record stays, so that reports can still name it.
--
-- 'revoked', 'already' or 'unknown'
local key_id = ARGV[1]
local sha256 = redis.call('HGET', api_key_ids_key(), key_id)
local record = sha256 and api_key_key(sha256)
if not record or redis.call('HEXISTS', record, 'i') == 0 then return 'unknown' end
if redis.call('HSETNX', record, 'x', now_ms()) == 0 then return 'already' end
return 'revoked'
