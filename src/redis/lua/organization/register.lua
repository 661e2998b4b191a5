#!lua
-- @wait replicas
-- @key any
-- Registers an organization. A script, so that it waits for replicas where writes have to (WRITE_REPLICAS).
--
-- KEYS[1]  <prefix>orgs
-- ARGV[1]  the id of the organization
--
-- 1 if it is new, otherwise 0
return redis.call('SADD', KEYS[1], ARGV[1])
