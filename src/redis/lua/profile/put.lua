#!lua
-- @wait replicas
-- @reply json
-- @include change
-- Contract 4.2: creates or changes a profile, all of it or nothing; index and profile change together.
--
-- {kind = put, profile, unusedFile}     the picture file that nothing refers to any more
-- {kind = retry}                        nothing was done: the current name is another, names cannot be judged
--                                       (lib/change.lua), or a denylist overwrite has not decided about this one yet
-- {kind = denied | taken}
-- {kind = object-not-found | object-not-in-collection, field = picture | avatar}
-- {kind = lapsed}                       the picture file has been pending for too long: the sweep may remove it

-- The user, their current username as the caller saw it ('' for none), the one to set ('' to leave it), and both of
-- them normalized.
local user, from, name, normalized_name, normalized_from = unpack(ARGV, 1, 5)
-- keep | unset | file | reference, and the name of the file or the reference.
local picture, picture_value, avatar, avatar_value = unpack(ARGV, 6, 9)
local most_pending_ms = tonumber(ARGV[10])
local username = ARGV[11] -- absent | given, also where it is the current one

local profile = profile_key(user)
local before = redis.call('HMGET', profile, 'u', 'pf')
if (before[1] or '') ~= from then return { kind = 'retry' } end

if name ~= '' then
  if names_refused() then return { kind = 'retry' } end
  -- The name that the user has is no other for being spelled anew, and may be denied (contract 4.4).
  if normalized_name ~= normalized_from then
    if is_denied(index, normalized_name) then return { kind = 'denied' } end
    if is_staged(normalized_name) then return { kind = 'retry' } end
  end
  local holder = holder_of(index, normalized_name)
  if holder and holder ~= user then return { kind = 'taken' } end
end

local function object_refused(field, becomes, reference)
  if becomes ~= 'reference' then return nil end
  if not url_of(reference) then return { kind = 'object-not-found', field = field } end
  if settings.needs_ownership and redis.call('SISMEMBER', collection_key(user), reference) == 0 then
    return { kind = 'object-not-in-collection', field = field }
  end
end
local refused = object_refused('picture', picture, picture_value) or object_refused('avatar', avatar, avatar_value)
if refused then return refused end
local now = now_ms()
if picture == 'file' then
  local pending_since = redis.call('ZSCORE', unreferenced_pictures_key(), picture_value)
  if not pending_since or now - pending_since > most_pending_ms then return { kind = 'lapsed' } end
end

-- Nothing below refuses.
-- "PUT creates the user's profile if there is none, and updates it otherwise." (contract 3.1)
-- First what fails where a key has a wrong type: a failed script keeps what it has done.
-- A migration must not take away the name that the client has just set, or confirmed.
if username == 'given' then redis.call('HDEL', pending_renames_key(), user) end
local unused = picture ~= 'keep' and before[2]
if unused and awaits_replay(unused) then unused = false end
if unused then redis.call('ZADD', unreferenced_pictures_key(), now, unused) end
local set = { 't', now, 'b', epoch }
if name ~= '' then
  if from ~= '' and normalized_from ~= normalized_name and holder_of(index, normalized_from) == user then
    release(index, normalized_from)
  end
  claim(index, normalized_name, user)
  set[5], set[6] = 'u', name
end
if picture ~= 'keep' then
  redis.call('HDEL', profile, 'pf', 'pr', 'pu', 'po', 'pt')
  if picture == 'file' then
    redis.call('ZREM', unreferenced_pictures_key(), picture_value)
    if queued then redis.call('SADD', replay_files_key(), picture_value) end
  end
  if picture ~= 'unset' then set[#set + 1], set[#set + 2] = picture == 'file' and 'pf' or 'pr', picture_value end
end
if avatar ~= 'keep' then
  redis.call('HDEL', profile, 'ar', 'au')
  if avatar == 'reference' then set[#set + 1], set[#set + 2] = 'ar', avatar_value end
end
redis.call('HSET', profile, unpack(set))
if queued then
  -- A change that is made again states its result again: the legacy service may have refused it the first time.
  enqueue('put', {
    username = username == 'given' and (name ~= '' and name or from) or nil,
    released = name ~= '' and from ~= '' and from or nil,
    picture = picture ~= 'keep' and { picture, picture_value } or nil,
    avatar = avatar ~= 'keep' and { avatar, avatar_value } or nil,
  })
end
return { kind = 'put', profile = read_profile(user), unusedFile = unused or nil }
