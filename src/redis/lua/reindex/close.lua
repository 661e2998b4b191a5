-- Another comparison, at the end or given up: names may change again.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms for cleaning up, 0 when that is done
--
-- 'lapsed' or 'closed'
if redis.call('GET', KEYS[1] .. 'reindex') ~= ARGV[1] then return 'lapsed' end
redis.call('HDEL', KEYS[1] .. 'settings', 'frozen')
redis.call('PEXPIRE', KEYS[1] .. 'reindex', ARGV[2])
return 'closed'
