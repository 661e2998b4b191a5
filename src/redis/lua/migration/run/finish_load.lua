#!lua
-- @include change
-- Puts a loaded organization into service: with its settings it exists.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  claim under which it was loaded (claim.lua)
-- ARGV[2]  how many buckets the name index has
-- ARGV[3]  comparison: exact | case-insensitive
-- ARGV[4…] min, max, pattern, template, ownership as stored, '' for unset; none of them for the default settings
--
-- 'finished', or 'lost' where the organization is not this attempt's to finish any more
if redis.call('GET', loading_key()) ~= ARGV[1] or redis.call('EXISTS', settings_key()) == 1 then return 'lost' end
redis.call('HSET', settings_key(), 'comparison', ARGV[3], 'n0', ARGV[2], 'epoch', epoch)
for position, field in ipairs({ 'min', 'max', 'pattern', 'template', 'ownership' }) do
  local value = ARGV[position + 3]
  if value and value ~= '' then redis.call('HSET', settings_key(), field, value) end
end
redis.call('DEL', loading_key())
return 'finished'
