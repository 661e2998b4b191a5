#!lua
-- @include keys
-- Stores an organization's settings, and so creates it where it is new. The comparison is only set for a new one:
-- changing it later means to rebuild the name index (reindex/). They count as made here (b), so that no later
-- migration changes them.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  comparison: exact | case-insensitive
-- ARGV[2]  least length of a username
-- ARGV[3]  greatest length of a username
-- ARGV[4]  RE2 pattern, '' for none
-- ARGV[5]  object URL template, '' for none
-- ARGV[6]  ownership: 1 | 0
--
-- 'created' or 'changed'
local settings = settings_key()
local is_new = redis.call('HSETNX', settings, 'comparison', ARGV[1]) == 1
redis.call('HSET', settings, 'min', ARGV[2], 'max', ARGV[3], 'ownership', ARGV[6], 'b', '1')
for position, field in ipairs({ 'pattern', 'template' }) do
  local value = ARGV[position + 3]
  if value == '' then redis.call('HDEL', settings, field) else redis.call('HSET', settings, field, value) end
end
return is_new and 'created' or 'changed'
