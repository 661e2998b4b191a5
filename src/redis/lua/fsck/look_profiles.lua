#!lua flags=no-writes
-- @include names store
-- What fsck needs of some profiles, each as of one instant.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV     users
--
-- for each {'none'}, {'wrong-type'} or {'profile', username, t, picture file, picture reference, avatar
-- reference, since}, false where unset; since: when the picture file was listed as unreferenced, false where it is not
local replies = {}
for position, user in ipairs(ARGV) do
  local key = profile_key(user)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local p = redis.call('HMGET', key, 'u', 't', 'pf', 'pr', 'ar')
    local since = p[3] and is_type(unreferenced_pictures_key(), 'zset') and redis.call('ZSCORE', unreferenced_pictures_key(), p[3])
    replies[position] = { 'profile', p[1], p[2], p[3], p[4], p[5], since or false }
  else
    replies[position] = { kind == 'none' and 'none' or 'wrong-type' }
  end
end
return replies
