#!lua flags=allow-oom
-- @key any
-- Draws the token of an apply: a number higher than all before, also where the clock was set back, and where a failover
-- has lost the last ones; and where Redis is full.
--
-- KEYS[1]  <prefix>migration:token
--
-- the token
local token = math.max(now_ms(), (tonumber(redis.call('GET', KEYS[1])) or 0) + 1)
redis.call('SET', KEYS[1], string.format('%.0f', token))
return token
