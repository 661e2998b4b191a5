-- Puts an object into a user's collection.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  reference
--
-- 'added', 'present' or 'unknown-organization'
if redis.call('EXISTS', KEYS[1] .. 'settings') == 0 then return 'unknown-organization' end
return redis.call('SADD', KEYS[1] .. 'c:' .. ARGV[1], ARGV[2]) == 1 and 'added' or 'present'
