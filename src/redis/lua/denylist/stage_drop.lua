#!lua flags=allow-oom
-- @wait replicas
-- Removes the stage of an overwrite that found names in use, or whose owner died, if no other one has it by now. A key
-- this long must not expire: Redis would free it on its main thread.
local token = ARGV[1] -- '' for one whose owner died
if (redis.call('GET', stage_owner_key()) or '') == token then
  redis.call('UNLINK', stage_key(), stage_owner_key(), replay_list_key(token))
end
