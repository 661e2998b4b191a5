#!lua
-- @reply json
-- @include epoch names store
-- Contract 4.2: creates or changes a profile, all of it or nothing; index and profile change together.
--
-- KEYS[1]   <prefix>{organization}:
-- ARGV[1]   user
-- ARGV[2]   generation of the name index that the forms belong to
-- ARGV[3]   the user's current username as the caller saw it, '' for none
-- ARGV[4]   its comparison form
-- ARGV[5]   the username to set, '' to leave it
-- ARGV[6]   its comparison form
-- ARGV[7]   picture: keep | unset | file | reference
-- ARGV[8]   the file's name or the reference
-- ARGV[9]   avatar: keep | unset | reference
-- ARGV[10]  the reference
-- ARGV[11]  how long a picture file may be pending, in ms
--
-- {'put', file, profile}            file: the picture file that nothing refers to any more, or false
-- {'stale'} {'frozen'}              the name cannot be judged: read the snapshot again and retry (lib/names.lua)
-- {'staged'}                        a denylist overwrite has not decided about the name yet: retry
-- {'denied'} {'taken'}
-- {'object-not-found', field} {'object-not-in-collection', field}    field: picture | avatar
-- {'lapsed'}                        the picture file has been pending for too long: the sweep may remove it
local user, index = ARGV[1], ARGV[2]
local profile = profile_key(user)
if ARGV[5] ~= '' then
  local refused = check_generation(index)
  if refused then return { refused } end
end
local before = redis.call('HMGET', profile, 'u', 'pf')
if (before[1] or '') ~= ARGV[3] then return { 'stale' } end

if ARGV[5] ~= '' then
  if is_denied(index, ARGV[6]) then return { 'denied' } end
  if is_staged(ARGV[6]) then return { 'staged' } end
  local holder = holder_of(index, ARGV[6])
  if holder and holder ~= user then return { 'taken' } end
end

local rules = redis.call('HMGET', settings_key(), 'template', 'ownership')
local function object_refused(reference)
  if not rules[1] and redis.call('HEXISTS', objects_key(), reference) == 0 then return 'object-not-found' end
  if rules[2] == '1' and redis.call('SISMEMBER', collection_key(user), reference) == 0 then
    return 'object-not-in-collection'
  end
end
if ARGV[7] == 'reference' then
  local refused = object_refused(ARGV[8])
  if refused then return { refused, 'picture' } end
end
if ARGV[9] == 'reference' then
  local refused = object_refused(ARGV[10])
  if refused then return { refused, 'avatar' } end
end
local now = now_ms()
if ARGV[7] == 'file' then
  local pending_since = redis.call('ZSCORE', unreferenced_pictures_key(), ARGV[8])
  if not pending_since or now - pending_since > tonumber(ARGV[11]) then return { 'lapsed' } end
end

-- Nothing below refuses.
-- "PUT creates the user's profile if there is none, and updates it otherwise." (contract 3.1)
redis.call('HSET', profile, 't', now, 'b', '1')
if ARGV[5] ~= '' then
  if ARGV[3] ~= '' and ARGV[4] ~= ARGV[6] then release(index, ARGV[4]) end
  claim(index, ARGV[6], user)
  redis.call('HSET', profile, 'u', ARGV[5])
end

local unused = false
if ARGV[7] ~= 'keep' then
  unused = before[2]
  redis.call('HDEL', profile, 'pf', 'pr', 'pu')
  if unused then redis.call('ZADD', unreferenced_pictures_key(), now, unused) end
  if ARGV[7] == 'file' then
    redis.call('ZREM', unreferenced_pictures_key(), ARGV[8])
    redis.call('HSET', profile, 'pf', ARGV[8])
  elseif ARGV[7] == 'reference' then
    redis.call('HSET', profile, 'pr', ARGV[8])
  end
end
if ARGV[9] ~= 'keep' then
  redis.call('HDEL', profile, 'ar', 'au')
  if ARGV[9] == 'reference' then redis.call('HSET', profile, 'ar', ARGV[10]) end
end
return { 'put', unused, read_profile(user) }
