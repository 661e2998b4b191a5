#!lua
-- @wait replicas
-- Removes the stage of an overwrite that found names in use, or whose owner died. A key this long must not expire:
-- Redis would free it on its main thread.
--
-- 'dropped', or 'lapsed' where the stage was not this overwrite's
local token = ARGV[1] -- '' for one whose owner died
if (redis.call('GET', stage_owner_key()) or '') ~= token then return 'lapsed' end
redis.call('UNLINK', stage_key(), stage_owner_key(), replay_list_key(token))
return 'dropped'
