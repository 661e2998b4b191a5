#!lua
-- @wait replicas
-- @reply json
-- @include change
-- Contract 4.2: creates or changes a profile, all of it or nothing; index and profile change together.
--
-- KEYS[1]   <prefix>{organization}:
-- ARGV[1]   user
-- ARGV[2]   the user's current username as the caller saw it, '' for none
-- ARGV[3]   the username to set, '' to leave it
-- ARGV[4]   its comparison form
-- ARGV[5]   the comparison form of the current one, where another is set
-- ARGV[6]   picture: keep | unset | file | reference
-- ARGV[7]   the file's name or the reference
-- ARGV[8]   avatar: keep | unset | reference
-- ARGV[9]   the reference
-- ARGV[10]  how long a picture file may be pending, in ms
--
-- {'put', file, profile}            file: the picture file that nothing refers to any more, or false
-- {'stale'} {'frozen'}              the name cannot be judged: read the snapshot again and retry (lib/names.lua)
-- {'staged'}                        a denylist overwrite has not decided about the name yet: retry
-- {'denied'} {'taken'}
-- {'object-not-found', field} {'object-not-in-collection', field}    field: picture | avatar
-- {'lapsed'}                        the picture file has been pending for too long: the sweep may remove it
local user, from, name, form, from_form = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local picture, avatar = ARGV[6], ARGV[8]
local profile = profile_key(user)
if name ~= '' then
  local refused = names_refused()
  if refused then return { refused } end
end
local before = redis.call('HMGET', profile, 'u', 'pf')
if (before[1] or '') ~= from then return { 'stale' } end

if name ~= '' then
  if is_denied(index, form) then return { 'denied' } end
  if is_staged(form) then return { 'staged' } end
  local holder = holder_of(index, form)
  if holder and holder ~= user then return { 'taken' } end
end

local function object_refused(reference)
  if not settings.template and redis.call('HEXISTS', objects_key(), reference) == 0 then return 'object-not-found' end
  if settings.needs_ownership and redis.call('SISMEMBER', collection_key(user), reference) == 0 then
    return 'object-not-in-collection'
  end
end
if picture == 'reference' then
  local refused = object_refused(ARGV[7])
  if refused then return { refused, 'picture' } end
end
if avatar == 'reference' then
  local refused = object_refused(ARGV[9])
  if refused then return { refused, 'avatar' } end
end
local now = now_ms()
if picture == 'file' then
  local pending_since = redis.call('ZSCORE', unreferenced_pictures_key(), ARGV[7])
  if not pending_since or now - pending_since > tonumber(ARGV[10]) then return { 'lapsed' } end
end

-- Nothing below refuses.
-- "PUT creates the user's profile if there is none, and updates it otherwise." (contract 3.1)
local set = { 't', now, 'b', epoch }
if name ~= '' then
  if from ~= '' and from_form ~= form then release(index, from_form) end
  claim(index, form, user)
  set[5], set[6] = 'u', name
end

local unused = false
if picture ~= 'keep' then
  unused = before[2]
  if unused and awaits_replay(unused) then unused = false end
  redis.call('HDEL', profile, 'pf', 'pr', 'pu', 'po')
  if unused then redis.call('ZADD', unreferenced_pictures_key(), now, unused) end
  if picture == 'file' then
    redis.call('ZREM', unreferenced_pictures_key(), ARGV[7])
    if queued then redis.call('SADD', replay_files_key(), ARGV[7]) end
  end
  if picture ~= 'unset' then set[#set + 1], set[#set + 2] = picture == 'file' and 'pf' or 'pr', ARGV[7] end
end
if avatar ~= 'keep' then
  redis.call('HDEL', profile, 'ar', 'au')
  if avatar == 'reference' then set[#set + 1], set[#set + 2] = 'ar', ARGV[9] end
end
redis.call('HSET', profile, unpack(set))
if queued then
  enqueue('put', {
    username = name ~= '' and name or nil,
    released = name ~= '' and from ~= '' and from or nil,
    picture = picture ~= 'keep' and { picture, ARGV[7] } or nil,
    avatar = avatar ~= 'keep' and { avatar, ARGV[9] } or nil,
  })
end
return { 'put', unused, read_profile(user) }
