#!lua
-- @wait replicas
-- @key any
-- Registers an organization. A script, so that it waits for replicas (WRITE_REPLICAS).
--
-- KEYS[1]  <prefix>orgs
--
-- 1 if it is new, otherwise 0
local id = ARGV[1]
return redis.call('SADD', KEYS[1], id)
