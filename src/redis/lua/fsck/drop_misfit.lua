#!lua
-- Removes a key of the wrong type, where what it should hold can be rebuilt.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  the key
-- ARGV[2]  the type it should have
--
-- 'changed' or 'mended'
local found = redis.call('TYPE', ARGV[1]).ok
if found == 'none' or found == ARGV[2] then return 'changed' end
redis.call('UNLINK', ARGV[1])
return 'mended'
