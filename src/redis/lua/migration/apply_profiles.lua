#!lua
-- @include source
-- Writes profiles of the source, each whole or not at all; index and profile change together. What the bridge itself
-- has written since stays, and so does what is newer here, unless the source is trusted.
--
-- ARGV[2]  for each profile: user, normalized name of its username ('' for none), the current username as the caller
--          saw it ('' for none), that one's normalized name, then the fields as stored, name and value in turn, the
--          last of them t: the last change in ms, '' where unknown
-- ARGV[5]  how many names the source has for the organization, so that an index still empty gets room for them
-- ARGV[6]  trust-source | '': whether to overwrite profiles that are newer here
--
-- {'frozen'}                        nothing was done: read the settings again and retry (lib/change.lua); also while a
--                                   denylist overwrite has yet to decide about a username
-- {'applied', outcomes, names, denied}
--          outcomes: a word for each profile
--            created, updated, unchanged
--            kept     the bridge has changed it since, or adopted it from the legacy service
--            newer    newer here than in the source: nothing was done
--            renamed  the current username is another one than the caller saw: nothing was done; retry
--                     with its normalized name
--            taken    another user has the username: nothing was done; a dry call says what it would do otherwise
--          names: {position (from 0), text} for each renamed, its current username, and for each profile whose username
--                 another user has, that user
--          denied: positions (from 0) of those written under a username that is on the denylist
if names_refused() then return { 'frozen' } end
if redis.call('EXISTS', stage_key()) == 1 then
  for _, row in ipairs(rows) do
    if row[2] ~= '' and is_staged(row[2]) and holder_of(index, row[2]) ~= row[1] then return { 'frozen' } end
  end
end
if not is_dry then make_room(index, tonumber(ARGV[5])) end
local outcomes, names, denied = {}, {}, {}

-- All in one call: most organizations deny few names, or none.
local is_denied_at = {}
if redis.call('EXISTS', denylist_key(index)) == 1 then
  local normalized_names = {}
  for position, row in ipairs(rows) do normalized_names[position] = row[2] end
  for position, name in ipairs(redis.call('HMGET', denylist_key(index), unpack(normalized_names))) do
    is_denied_at[position] = name and true
  end
end

local function was_ours(have) return have.b ~= nil and not is_ours(have.b) end

-- A picture that was copied here stays while the source shows the URL it came from, unless it may be older; so does a
-- reference that was set here and leads to the URL that the source shows: the legacy service may not show references.
local function fields_of(row, have)
  local fields = { unpack(row, 5) }
  local has_reference = have.pr and not have.pu and (have.at or was_ours(have))
  local shown
  for i = 1, #fields, 2 do
    if fields[i] == 'pr' then has_reference = false end
    if fields[i] == 'pu' then shown = i end
  end
  if not shown then return fields end
  if have.pf and have.po == fields[shown + 1] and not is_outdated_copy(have.pt) then
    fields[shown], fields[shown + 1] = 'pf', have.pf
  elseif has_reference and url_of(have.pr) == fields[shown + 1] then
    fields[shown], fields[shown + 1] = 'pr', have.pr
  end
  return fields
end

-- An adoption knows neither when the profile was changed nor whether the avatar has a URL of its own: it stores one
-- only where the avatar's reference does not lead to it. A change that was made here, and reached the legacy service
-- before that got the authority back, was made there at another time, and without such a URL.
local function may_differ(have, field, value)
  if not have.at and not was_ours(have) then return false end
  if field == 't' then return have.t == '' or was_ours(have) end
  return field == 'au' and not have.au and have.ar ~= nil and url_of(have.ar) == value
end

-- Who wrote the profile (b), when it was adopted (as, at), and where and when its picture was copied (po, pt) are not
-- part of what the source says.
local function is_same(have, count, fields)
  if have.b then count = count - 1 end
  if have.po then count = count - 1 end
  if have.pt then count = count - 1 end
  if have.at then count = count - 2 end
  local expected = #fields / 2
  for i = 1, #fields, 2 do
    if have[fields[i]] ~= fields[i + 1] then
      if not may_differ(have, fields[i], fields[i + 1]) then return false end
      if not have[fields[i]] then expected = expected - 1 end
    end
  end
  return count == expected
end

local function pick(fields, name, first)
  for i = first or 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
end

-- Claims the row's username, if it has one, unless this is dry. Returns 'taken' where that fails.
local function claim_name(user, normalized_name, position)
  if normalized_name ~= '' and (is_dry or not claim(index, normalized_name, user)) then
    local holder = holder_of(index, normalized_name)
    if holder and holder ~= user then
      names[#names + 1] = { position - 1, holder }
      return not is_dry and 'taken'
    end
  end
  if is_denied_at[position] then denied[#denied + 1] = position - 1 end
end

-- Whether a profile has exactly the row's fields, and in their order, as it does unless it was changed since. Saves
-- making tables of most profiles.
local function is_as_written(row, old)
  if #old ~= #row - 4 then return false end
  for i = 1, #old do
    if old[i] ~= row[i + 4] then return false end
  end
  return row[2] == '' or holder_of(index, row[2]) == row[1]
end

local function create(row, position, profile)
  local refused = claim_name(row[1], row[2], position)
  if refused then return refused end
  if not is_dry then
    local file = pick(row, 'pf', 5)
    if file then redis.call('ZREM', unreferenced_pictures_key(), file) end
    redis.call('HSET', profile, unpack(row, 5))
  end
  return 'created'
end

local function update(row, position, profile, old)
  local user, normalized_name, have = row[1], row[2], by_name(old)
  local fields = fields_of(row, have)
  if is_same(have, #old / 2, fields) and (normalized_name == '' or holder_of(index, normalized_name) == user) then
    return 'unchanged'
  end
  if is_kept(have.b, have.at) then return 'kept' end
  local is_newer = not have.b and (tonumber(have.t) or -1) > (tonumber(row[#row]) or -1)
  if is_newer and ARGV[6] == '' then return 'newer' end
  if have.u and have.u ~= row[3] and have.u ~= pick(fields, 'u') then
    names[#names + 1] = { position - 1, have.u }
    return 'renamed'
  end
  local refused = claim_name(user, normalized_name, position)
  if refused then return refused end
  if is_dry then return 'updated' end

  if have.u == row[3] and row[4] ~= normalized_name and holder_of(index, row[4]) == user then release(index, row[4]) end
  local file = pick(fields, 'pf')
  if have.pf and have.pf ~= file then redis.call('ZADD', unreferenced_pictures_key(), now_ms(), have.pf) end
  if file and have.pf ~= file then redis.call('ZREM', unreferenced_pictures_key(), file) end
  redis.call('DEL', profile)
  redis.call('HSET', profile, unpack(fields))
  if have.po and have.pf == file then redis.call('HSET', profile, 'po', have.po, 'pt', have.pt or 0) end
  if have.at then redis.call('HSET', profile, 'as', have.as or 0, 'at', have.at) end
  redis.call('HDEL', lost_names_key(), user)
  return 'updated'
end

for position, row in ipairs(rows) do
  local profile = profile_key(row[1])
  local old = redis.call('HGETALL', profile)
  if #old == 0 then
    outcomes[position] = create(row, position, profile)
  else
    outcomes[position] = is_as_written(row, old) and 'unchanged' or update(row, position, profile, old)
  end
end
return { 'applied', outcomes, names, denied }
