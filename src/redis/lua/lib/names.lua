-- @include store
-- The username index and the denylist. Both hold comparison forms, which the caller computes; `index` is the
-- generation of the index that these forms belong to.
--
-- The index grows by linear hashing (Litwin 1980): a bucket is a hash small enough to stay in the compact encoding,
-- and whenever one has become too full, the next in turn is split in two. So a name takes the same memory in an
-- organization of a hundred users as in one of millions, and no call ever does more than a bucket's work.

-- Names in a bucket: the most before it is split, and the average.
local fullest, usual = 64, 36

-- How many buckets a generation has, and the power of two that is not below it. `counts` has the number alone, where a
-- script has read it along with other settings.
local known, counts = {}, {}
local function remember(index, count)
  local range = 1
  while range < count do range = range * 2 end
  known[index] = { count = count, range = range }
  return known[index]
end

local function is_type(key, wanted)
  local found = redis.call('TYPE', key).ok
  return found == wanted or found == 'none'
end

local function size_of(index)
  if known[index] then return known[index] end
  local count = counts[index]
  if count == nil then count = redis.call('HGET', settings_key(), 'n' .. index) end
  return remember(index, tonumber(count or 1))
end

local function digest(form)
  return tonumber(string.sub(redis.sha1hex(form), 1, 8), 16)
end

-- The key of the bucket that a form belongs to, and the form's place, from 0 up to 2^32.
local function bucket(index, form)
  local size = size_of(index)
  local place = digest(form)
  local number = place % size.range
  -- Not split yet in this turn.
  if number >= size.count then number = place % (size.range / 2) end
  return names_key(index, number), place
end

-- Adds a bucket: the next in turn gives up the forms that belong there from now on. Not if a key of another type is in
-- its place: the calling script has begun to write, and must not fail.
local function split(index)
  local size = size_of(index)
  local count, range = size.count, size.range
  if count == range then range = range * 2 end
  local from, to = names_key(index, count - range / 2), names_key(index, count)
  if not is_type(from, 'hash') or not is_type(to, 'hash') then return end
  local entries = redis.call('HGETALL', from)
  for i = 1, #entries, 2 do
    if digest(entries[i]) % range == count then
      redis.call('HSET', to, entries[i], entries[i + 1])
      redis.call('HDEL', from, entries[i])
    end
  end
  redis.call('HSET', settings_key(), 'n' .. index, count + 1)
  remember(index, count + 1)
end

-- Gives an index that is still empty the buckets that so many names need: then none has to be split on the way.
local function make_room(index, names)
  if size_of(index).count > 1 or redis.call('EXISTS', names_key(index, 0)) == 1 then return end
  local count = math.max(1, math.ceil(names / usual))
  redis.call('HSET', settings_key(), 'n' .. index, count)
  remember(index, count)
end

local function holder_of(index, form)
  return redis.call('HGET', bucket(index, form), form)
end

-- Gives a form to a user, unless somebody holds it; returns whether it did.
local function claim(index, form, user)
  local key, place = bucket(index, form)
  if redis.call('HSETNX', key, form, user) == 0 then return false end
  -- One name in four checks how full its bucket is: that is often enough, and costs the other three nothing.
  if place < 2 ^ 30 and redis.call('HLEN', key) > fullest then split(index) end
  return true
end

local function release(index, form)
  redis.call('HDEL', bucket(index, form), form)
end

local function is_denied(index, form)
  return redis.call('HEXISTS', denylist_key(index), form) == 1
end

-- A name on a list that is about to become the denylist: whether it may be claimed is not yet decided. A stage counts
-- for as long as it has an owner.
local function is_staged(form)
  return redis.call('HEXISTS', stage_key(), form) == 1 and redis.call('EXISTS', stage_owner_key()) == 1
end

-- Why forms of this generation must not be written now: 'stale' if the organization has another comparison by now,
-- 'frozen' while its index is being rebuilt, otherwise nil.
local function refused_generation(index, in_force)
  if in_force ~= index then return 'stale' end
  return redis.call('EXISTS', rebuild_key()) == 1 and 'frozen' or nil
end

-- The same, for scripts that need nothing else from the settings.
local function check_generation(index)
  local now = redis.call('HMGET', settings_key(), 'index', 'n' .. index)
  counts[index] = now[2]
  return refused_generation(index, now[1] or '0')
end

-- While a rebuild holds its key, no name may change. Renews the key's lease; false if this rebuild does not hold it
-- any more.
local function renew_rebuild(token, lease)
  if redis.call('GET', rebuild_key()) ~= token then return false end
  redis.call('PEXPIRE', rebuild_key(), lease)
  return true
end
