#!lua
-- @wait replicas
-- @include local_writes store
-- Puts an object into the organization's catalogue, where no later migration changes it.
--
-- 'set' or 'unknown-organization'
local reference, url = unpack(ARGV)
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
redis.call('HSET', objects_key(), reference, url)
mark_local_write('o', reference)
return 'set'
