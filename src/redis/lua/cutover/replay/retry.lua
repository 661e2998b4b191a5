#!lua
-- @include replay
-- Puts a change that was set aside at the end of the queue, as a retry.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  its id
--
-- 1, or 0 where no such change is set aside
local aside = redis.call('HGET', replay_aside_key(), ARGV[1])
if not aside then return 0 end
local fields = cjson.decode(aside)
redis.call('HDEL', replay_aside_key(), ARGV[1])
redis.call('XADD', replay_key(), '*', 'key', fields.key, 'role', fields.role, 'user', fields.user, 'sealed',
  fields.sealed, 'kind', fields.kind, 'change', fields.change, 'retry', '1')
return 1
