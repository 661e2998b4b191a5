#!lua flags=allow-oom
-- @wait replicas
-- @key any
-- Stores the operator's layer of the deprecation policy, unless it is another by now; also where Redis is full, since it
-- may end a brownout.
--
-- KEYS[1]  <prefix>deprecation:policy
--
-- 1, or 0 where nothing was stored
local expected, wanted = unpack(ARGV) -- expected: '' for none
if (redis.call('GET', KEYS[1]) or '') ~= expected then return 0 end
redis.call('SET', KEYS[1], wanted)
return 1
