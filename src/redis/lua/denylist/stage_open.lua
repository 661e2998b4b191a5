#!lua
-- @wait replicas
-- @include change
-- Contract 4.5, first step: opens the one stage an organization has for its next denylist.
--
-- 'opened', or 'busy' while another overwrite holds the stage
local token, lease_ms = unpack(ARGV)
if not redis.call('SET', stage_owner_key(), token, 'NX', 'PX', lease_ms) then return 'busy' end
redis.call('UNLINK', stage_key())
return 'opened'
