#!lua
-- @wait replicas
-- @include store
-- Links a wallet to a user, who gets a profile if they have none. The change counts as made here (b), so that no later
-- migration undoes it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  address
-- ARGV[3]  field: w verified | wu unverified
--
-- 'set' or 'unknown-organization'
local profile = profile_key(ARGV[1])
if redis.call('EXISTS', settings_key()) == 0 then return 'unknown-organization' end
redis.call('HDEL', profile, 'w', 'wu')
redis.call('HSET', profile, ARGV[3], ARGV[2], 't', now_ms(), 'b', epoch_in_force())
return 'set'
