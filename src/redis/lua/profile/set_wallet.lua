#!lua
-- @wait replicas
-- Links a wallet to a user, who gets a profile if they have none. The change counts as made here (b), so that no later
-- migration undoes it.
local user, address, field = unpack(ARGV) -- field: w verified | wu unverified
local profile = profile_key(user)
redis.call('HDEL', profile, 'w', 'wu')
redis.call('HSET', profile, field, address, 't', now_ms(), 'b', epoch_in_force())
