#!lua flags=allow-oom
-- @wait replicas
-- @key any
-- Stores the operator's layer of the deprecation policy, unless it is another by now; also where Redis is full, since it
-- may end a brownout.
--
-- KEYS[1]  <prefix>deprecation:policy
--
-- what it held, nil for nothing
local expected, wanted = unpack(ARGV) -- expected: '' for none
local held = redis.call('GET', KEYS[1])
if (held or '') == expected then redis.call('SET', KEYS[1], wanted) end
return held
