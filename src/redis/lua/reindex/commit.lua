#!lua
-- @include freeze keys
-- Another comparison, last step: in one instant for every client the comparison, its index and its denylist
-- hold, and names may change again. The rebuild stays this tool's until it has removed the old generation.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms
-- ARGV[3]  the next generation
-- ARGV[4]  the comparison
--
-- 'lapsed' or 'committed'
if not freeze(ARGV[1], ARGV[2]) then return 'lapsed' end
redis.call('HSET', settings_key(), 'comparison', ARGV[4], 'index', ARGV[3])
redis.call('HDEL', settings_key(), 'frozen')
return 'committed'
