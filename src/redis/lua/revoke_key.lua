-- Revokes an API key, from the very next request on. The record stays, so that reports can still name it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  public id
--
-- 'revoked' (also when it was already) or 'unknown'
local sha256 = redis.call('HGET', KEYS[1] .. 'keys', ARGV[1])
if not sha256 then return 'unknown' end
redis.call('HSETNX', KEYS[1] .. 'key:' .. sha256, 'x', now_ms())
return 'revoked'
