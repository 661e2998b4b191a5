#!lua
-- @wait replicas
-- @include local_writes
-- Puts an object into the organization's catalogue, where no later migration changes it.
local reference, url = unpack(ARGV)
redis.call('HSET', objects_key(), reference, url)
mark_local_write('o', reference)
