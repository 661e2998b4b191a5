#!lua
-- @wait replicas
-- @include store
-- Removes the stage of an overwrite: one that found names in use, so that the denylist stays as it was (contract 4.5),
-- or one whose owner died. A key this long must not expire: Redis would free it on its main thread.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of the overwrite, '' for one whose owner died
--
-- 'dropped', or 'lapsed' where the stage was not this overwrite's
if (redis.call('GET', stage_owner_key()) or '') ~= ARGV[1] then return 'lapsed' end
redis.call('UNLINK', stage_key(), stage_owner_key(), replay_list_key(ARGV[1]))
return 'dropped'
