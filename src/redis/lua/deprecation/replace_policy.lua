#!lua
-- @key any
-- Replaces the operator's deprecation policy, unless someone else has changed it since it was read.
--
-- KEYS[1]  <prefix>deprecation:policy
-- ARGV[1]  the text that was read, '' if there was none
-- ARGV[2]  the new text
--
-- 'replaced'   the new text holds
-- 'changed'    another text is there: read again
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 'changed' end
redis.call('SET', KEYS[1], ARGV[2])
return 'replaced'
