#!lua
-- @include audit
-- Removes what cannot be read from a hash or a set; the audit trail keeps it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  hash | set
-- ARGV[2]  the key
-- ARGV[3]  field or member
-- ARGV[4]  the value it was found with, '' for a set
--
-- 'changed' or 'mended'
local key = ARGV[2]
if ARGV[1] == 'set' then
  if redis.call('SREM', key, ARGV[3]) == 0 then return 'changed' end
else
  if redis.call('HGET', key, ARGV[3]) ~= ARGV[4] then return 'changed' end
  redis.call('HDEL', key, ARGV[3])
end
audit('repair', 'operator', 'removed', ARGV[2], 'field', ARGV[3], 'value', ARGV[4])
return 'mended'
