#!lua
-- @include change
-- Puts a loaded organization into service: with its settings it exists.
--
-- ARGV[4…] min, max, pattern, template, ownership as stored, '' for unset; none of them for the default settings
--
-- 'finished', or 'lost' where the organization is not this attempt's to finish any more
local claim, buckets, comparison = unpack(ARGV, 1, 3)
if redis.call('GET', loading_key()) ~= claim or redis.call('EXISTS', settings_key()) == 1 then return 'lost' end
redis.call('HSET', settings_key(), 'comparison', comparison, 'n0', buckets, 'epoch', epoch)
for position, field in ipairs({ 'min', 'max', 'pattern', 'template', 'ownership' }) do
  local value = ARGV[position + 3]
  if value and value ~= '' then redis.call('HSET', settings_key(), field, value) end
end
redis.call('DEL', loading_key())
return 'finished'
