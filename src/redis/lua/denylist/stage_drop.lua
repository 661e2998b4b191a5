#!lua
-- @wait replicas
-- @include store
-- Contract 4.5, when names are in use: removes the stage; the denylist stays as it was.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this overwrite
--
-- 'dropped', or 'lapsed' where the stage was not this overwrite's
if redis.call('GET', stage_owner_key()) ~= ARGV[1] then return 'lapsed' end
redis.call('UNLINK', stage_key(), stage_owner_key(), replay_list_key(ARGV[1]))
return 'dropped'
