#!lua
-- @include keys
-- Another comparison, at the end or given up: names may change again.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms for cleaning up, 0 when that is done
--
-- 'lapsed' or 'closed'
if redis.call('GET', rebuild_key()) ~= ARGV[1] then return 'lapsed' end
redis.call('HDEL', settings_key(), 'frozen')
redis.call('PEXPIRE', rebuild_key(), ARGV[2])
return 'closed'
