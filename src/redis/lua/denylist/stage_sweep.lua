#!lua
-- @wait replicas
-- @include store
-- Removes a stage whose owner died. A key this long must not expire: Redis would free it on its main thread.
--
-- KEYS[1]  <prefix>{organization}:
--
-- 'removed', or 'none' where there is no stage or its owner is alive
if redis.call('EXISTS', stage_owner_key()) == 1 then return 'none' end
return redis.call('UNLINK', stage_key()) == 1 and 'removed' or 'none'
