#!lua
-- @include change
-- Writes an organization's settings. How names are compared is only set for a new one; settings that were made here
-- stay.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  write | dry
-- ARGV[2]  comparison: exact | case-insensitive
-- ARGV[3…] min, max, pattern, template, ownership as stored, '' for unset; none of them where nothing is known of
--          the organization but that it is there
--
-- 'created', 'updated', 'unchanged' or 'kept' (changed here)
local is_dry = ARGV[1] == 'dry'
local have = redis.call('HMGET', settings_key(), 'comparison', 'min', 'max', 'pattern', 'template', 'ownership', 'b')
if have[1] and #ARGV == 2 then return 'unchanged' end
if have[1] then
  local is_same = have[1] == ARGV[2]
  for position = 2, 6 do is_same = is_same and (have[position] or '') == ARGV[position + 1] end
  if is_same then return 'unchanged' end
  if have[7] then return 'kept' end
end
if is_dry then
  return have[1] and 'updated' or 'created'
end
if not have[1] then redis.call('HSET', settings_key(), 'comparison', ARGV[2], 'epoch', epoch) end
for position, field in ipairs({ 'min', 'max', 'pattern', 'template', 'ownership' }) do
  local value = ARGV[position + 2]
  if value == '' then
    redis.call('HDEL', settings_key(), field)
  elseif value then
    redis.call('HSET', settings_key(), field, value)
  end
end
return have[1] and 'updated' or 'created'
