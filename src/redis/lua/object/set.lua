#!lua
-- @wait replicas
-- @include local_writes store
-- Puts an object into the organization's catalogue, where no later migration changes it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  reference
-- ARGV[2]  URL of its image
--
-- 'set' or 'unknown-organization'
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
redis.call('HSET', objects_key(), ARGV[1], ARGV[2])
mark_local_write('o', ARGV[1])
return 'set'
