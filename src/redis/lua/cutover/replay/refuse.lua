#!lua flags=allow-oom
-- Records that the legacy service has refused an API key, until it accepts the key.
--
-- {for how many ms it has refused the key, 1 if it has accepted another one meanwhile, else 0}
local key_id = ARGV[1]
local now = now_ms()
redis.call('HSETNX', replay_refusals_key(), key_id, now)
local found = redis.call('HMGET', replay_refusals_key(), key_id, '')
local since, accepted_at = tonumber(found[1]), tonumber(found[2] or 0)
return { now - since, accepted_at > since and 1 or 0 }
