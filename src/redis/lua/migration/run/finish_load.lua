#!lua
-- @include change
-- Puts a loaded organization into service: with its settings it exists.
--
-- ARGV[3…] comparison, min, max, pattern, template, ownership as stored, '' for unset
--
-- 'finished', or 'lost' where this attempt may no longer finish it
local claim, buckets = unpack(ARGV, 1, 2)
if redis.call('GET', loading_key()) ~= claim or redis.call('EXISTS', settings_key()) == 1 then return 'lost' end
redis.call('HSET', settings_key(), 'n0', buckets, 'epoch', epoch)
for position, field in ipairs({ 'comparison', 'min', 'max', 'pattern', 'template', 'ownership' }) do
  local value = ARGV[position + 2]
  if value ~= '' then redis.call('HSET', settings_key(), field, value) end
end
redis.call('DEL', loading_key())
return 'finished'
