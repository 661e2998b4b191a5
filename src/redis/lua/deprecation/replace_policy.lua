#!lua
-- @key any
-- Replaces the operator's deprecation policy, unless someone else has changed it since it was read.
--
-- KEYS[1]  <prefix>deprecation:policy
--
-- 'replaced'   the new text holds
-- 'changed'    another text is there: read again
local read, new = unpack(ARGV) -- '' if there was none to read
if (redis.call('GET', KEYS[1]) or '') ~= read then return 'changed' end
redis.call('SET', KEYS[1], new)
return 'replaced'
