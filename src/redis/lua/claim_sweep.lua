#!lua flags=allow-oom
-- @key any
-- Lets one process make the next sweep: it may be what frees memory where Redis is full.
--
-- KEYS[1]  <prefix>sweep
-- 1, or 0 if there was one less than `every_ms` ago
local every_ms = ARGV[1]
return redis.call('SET', KEYS[1], '', 'PX', every_ms, 'NX') and 1 or 0
