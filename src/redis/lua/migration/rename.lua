#!lua
-- @include source
-- Records renames that depend on each other; or makes them, in the order given, and takes each off the record of pending
-- renames. A recorded rename is made even if the bridge has changed the profile since, but not its username: a PUT of one
-- takes the rename off the record. One that is no longer on record for another reason was made by another run.
--
-- {'frozen'}  nothing was done: read the settings again and retry
-- {'done'}    those renames that can be made are

-- Each row: user, old name, its normalized name, new name, its normalized name; '' for none. Then record | make.
local kind = ARGV[5]
if names_refused() then return { 'frozen' } end
if kind == 'record' then
  for _, row in ipairs(rows) do
    -- Not if the profile was changed here after it was compared.
    if not is_kept(unpack(redis.call('HMGET', profile_key(row[1]), 'b', 'at'))) then
      redis.call('HSET', pending_renames_key(), row[1], cjson.encode({ row[2], row[4] }))
    end
  end
  return { 'done' }
end

-- Whether a profile is there, and still has a name ('' for none), also according to the legacy service.
local function may_leave(user, name)
  local have = redis.call('HMGET', profile_key(user), 'u', 't', 'at')
  return have[2] and (have[1] or '') == name and not is_adopted_since(have[3])
end

local function is_recorded(user, from, to)
  local record = redis.call('HGET', pending_renames_key(), user)
  local names = record and cjson.decode(record) or {}
  return names[1] == from and names[2] == to
end

-- In a cycle, each user takes the old name of the one before, the first that of the last. It begins with that name free;
-- in any other case no name is free before its user has another.
local is_cycle = true
for position, row in ipairs(rows) do
  if row[4] ~= '' and is_staged(row[5]) then return { 'frozen' } end
  local before = rows[position == 1 and #rows or position - 1]
  is_cycle = is_cycle and row[5] ~= '' and row[5] == before[3]
    and is_recorded(row[1], row[2], row[4]) and may_leave(row[1], row[2]) and holder_of(index, row[3]) == row[1]
end
if is_cycle then release(index, rows[#rows][3]) end

-- Not if somebody else has the new name.
local function rename(user, from, normalized_from, to, normalized_to)
  local profile = profile_key(user)
  if not may_leave(user, from) then return end
  if to ~= '' and holder_of(index, normalized_to) ~= user and not claim(index, normalized_to, user) then return end
  if from ~= '' and normalized_from ~= normalized_to and holder_of(index, normalized_from) == user then
    release(index, normalized_from)
  end
  if to == '' then redis.call('HDEL', profile, 'u') else redis.call('HSET', profile, 'u', to) end
end

for _, row in ipairs(rows) do
  if is_recorded(row[1], row[2], row[4]) then
    rename(unpack(row))
    redis.call('HDEL', pending_renames_key(), row[1])
  end
end
return { 'done' }
