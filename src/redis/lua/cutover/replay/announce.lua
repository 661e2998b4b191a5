#!lua flags=allow-oom
-- @key any
-- Puts an organization on the list of those in which changes wait, with a token that shows that some are new. A script,
-- so that it works also where Redis is full: replaying what waits is what frees memory.
--
-- KEYS[1]  <prefix>cutover:replay-news
local id, token = unpack(ARGV)
redis.call('HSET', KEYS[1], id, token)
