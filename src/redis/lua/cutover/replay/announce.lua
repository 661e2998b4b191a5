#!lua flags=allow-oom
-- @key any
-- Puts an organization on the list of those in which changes wait. A script, so that it works also where Redis is full:
-- replaying what waits is what frees memory.
--
-- KEYS[1]  <prefix>cutover:replay-organizations
local id = ARGV[1]
redis.call('SADD', KEYS[1], id)
