#!lua flags=no-writes
-- @include store
-- How much waits in an organization.
--
-- {entries, set aside, id of the oldest entry or ''}
local oldest = redis.call('XRANGE', replay_key(), '-', '+', 'COUNT', 1)[1]
return { redis.call('XLEN', replay_key()), redis.call('HLEN', replay_aside_key()), oldest and oldest[1] or '' }
