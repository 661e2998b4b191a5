#!lua flags=no-writes
-- @key any
-- The whole state, for status and dashboard.
--
-- KEYS[1]  <prefix>cutover
--
-- {the time, fields and values in turn}
return { now_ms(), redis.call('HGETALL', KEYS[1]) }
