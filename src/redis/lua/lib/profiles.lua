-- @include keys
-- What a reader needs of a profile, or nil where the user has none:
-- {username, picture file, picture reference, picture url, avatar reference, avatar url, wallet,
--  catalogue url of the picture, catalogue url of the avatar, url template}, false where unset.
-- The template is looked up only where a reference has no URL without it.
local function read_profile(user)
  local p = redis.call('HMGET', profile_key(user), 'u', 'pf', 'pr', 'pu', 'ar', 'au', 'w', 't')
  if not p[8] then return nil end
  p[8] = false
  p[9] = false
  p[10] = false
  if p[3] then p[8] = redis.call('HGET', objects_key(), p[3]) end
  if p[5] then p[9] = redis.call('HGET', objects_key(), p[5]) end
  if (p[3] and not p[8] and not p[4]) or (p[5] and not p[9] and not p[6]) then
    p[10] = redis.call('HGET', settings_key(), 'template')
  end
  return p
end
