#!lua
-- @wait replicas
-- @key any
-- Registers an organization. A script, so that it waits for replicas (WRITE_REPLICAS).
--
-- KEYS[1]  <prefix>orgs
local id = ARGV[1]
redis.call('SADD', KEYS[1], id)
