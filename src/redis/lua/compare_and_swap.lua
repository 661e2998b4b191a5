#!lua flags=allow-oom
-- @key any
-- Sets a key, if its value is the expected one; also where Redis is full, since otherwise no lock could be released then.
--
-- KEYS[1]  the key
--
-- the value that it had, '' for none
local expected, wanted, expires_ms = unpack(ARGV) -- wanted: '' to delete it; expires_ms: 0 for never
local held = redis.call('GET', KEYS[1]) or ''
if held ~= expected then return held end
if wanted == '' then
  redis.call('DEL', KEYS[1])
elseif expires_ms == '0' then
  redis.call('SET', KEYS[1], wanted)
else
  redis.call('SET', KEYS[1], wanted, 'PX', expires_ms)
end
return held
