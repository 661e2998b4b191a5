#!lua
-- @wait replicas
-- @include local_writes store
-- Puts an object into a user's collection, so that no later migration removes it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  reference
--
-- 'added', 'present' or 'unknown-organization'
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
mark_local_write('c', ARGV[1] .. '\n' .. ARGV[2])
return redis.call('SADD', collection_key(ARGV[1]), ARGV[2]) == 1 and 'added' or 'present'
