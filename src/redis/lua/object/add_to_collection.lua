#!lua
-- @wait replicas
-- @include local_writes store
-- Puts an object into a user's collection, so that no later migration removes it.
--
-- 'added', 'present' or 'unknown-organization'
local user, reference = unpack(ARGV)
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
mark_local_write('c', user .. '\n' .. reference)
return redis.call('SADD', collection_key(user), reference) == 1 and 'added' or 'present'
