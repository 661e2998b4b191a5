#!lua
-- @wait replicas
-- @include local_writes
-- Puts an object into a user's collection, so that no later migration removes it.
--
-- 'added' or 'present'
local user, reference = unpack(ARGV)
mark_local_write('c', user .. '\n' .. reference)
return redis.call('SADD', collection_key(user), reference) == 1 and 'added' or 'present'
