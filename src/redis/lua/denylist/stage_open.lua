#!lua
-- @wait replicas
-- @include change
-- Contract 4.5, first step: opens the one stage an organization has for its next denylist.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this overwrite
-- ARGV[2]  lease in ms: how long the stage counts after the last call of an owner that died
--
-- 'opened', or 'busy' while another overwrite holds the stage
if not redis.call('SET', stage_owner_key(), ARGV[1], 'NX', 'PX', ARGV[2]) then return 'busy' end
redis.call('UNLINK', stage_key())
return 'opened'
