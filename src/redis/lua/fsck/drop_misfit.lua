-- Removes a key of the wrong type, where what it should hold can be rebuilt.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  the rest of the key
-- ARGV[2]  the type it should have
--
-- 'changed' or 'mended'
local found = redis.call('TYPE', KEYS[1] .. ARGV[1]).ok
if found == 'none' or found == ARGV[2] then return 'changed' end
redis.call('UNLINK', KEYS[1] .. ARGV[1])
return 'mended'
