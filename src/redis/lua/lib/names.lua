-- The username index and the denylist, by normalized names of the generation `index`, which the caller computes.
--
-- The index grows by linear hashing (Litwin 1980): a bucket is a hash small enough to stay in the compact encoding,
-- and whenever one has become too full, the next in turn is split in two. So a name takes the same memory in an
-- organization of any size, and no call does more than a bucket's work.

-- Names in a bucket: the most before it is split, and the average.
local fullest, usual = 64, 36

-- The numbers of buckets that a script has read already, by generation.
local counts = {}

-- How many buckets a generation has, and the least power of two that is not below it.
local function size_of(index)
  if counts[index] == nil then counts[index] = redis.call('HGET', settings_key(), 'n' .. index) end
  local count = tonumber(counts[index] or 1)
  local _, bits = math.frexp(count - 1)
  return count, 2 ^ bits
end

local function hash_of(normalized_name)
  return tonumber(string.sub(redis.sha1hex(normalized_name), 1, 8), 16)
end

-- The key of the bucket that a normalized name belongs to, and the name's hash, from 0 up to 2^32.
local function bucket(index, normalized_name)
  local count, range = size_of(index)
  local hash = hash_of(normalized_name)
  local number = hash % range
  -- Not split yet in this turn.
  if number >= count then number = hash % (range / 2) end
  return names_key(index, number), hash
end

-- Adds a bucket: the next in turn gives up the names that belong there from now on. Not if a key of another type is in
-- the way: the calling script has begun to write, and must not fail.
local function split(index)
  local count, range = size_of(index)
  if count == range then range = range * 2 end
  local from, to = names_key(index, count - range / 2), names_key(index, count)
  if not is_type(from, 'hash') or not is_type(to, 'hash') then return end
  local entries = redis.call('HGETALL', from)
  for i = 1, #entries, 2 do
    if hash_of(entries[i]) % range == count then
      redis.call('HSET', to, entries[i], entries[i + 1])
      redis.call('HDEL', from, entries[i])
    end
  end
  redis.call('HSET', settings_key(), 'n' .. index, count + 1)
  counts[index] = count + 1
end

-- Gives an empty index the buckets that this many names need, so that none has to be split while it is filled.
local function make_room(index, names)
  if size_of(index) > 1 or redis.call('EXISTS', names_key(index, 0)) == 1 then return end
  local count = math.max(1, math.ceil(names / usual))
  redis.call('HSET', settings_key(), 'n' .. index, count)
  counts[index] = count
end

local function holder_of(index, normalized_name)
  return redis.call('HGET', bucket(index, normalized_name), normalized_name)
end

-- Gives a normalized name to a user, unless somebody holds it; returns whether it did.
local function claim(index, normalized_name, user)
  local key, hash = bucket(index, normalized_name)
  if redis.call('HSETNX', key, normalized_name, user) == 0 then return false end
  -- One name in four checks how full its bucket is, which is often enough.
  if hash < 2 ^ 30 and redis.call('HLEN', key) > fullest then split(index) end
  return true
end

local function release(index, normalized_name)
  redis.call('HDEL', bucket(index, normalized_name), normalized_name)
end

local function is_denied(index, normalized_name)
  return redis.call('HEXISTS', denylist_key(index), normalized_name) == 1
end

-- What the denylist has for a name, under its normalized name: the name as given, '' where that is the same.
local function spelling_of(name, normalized_name) return normalized_name == name and '' or name end

-- Whether a name is on a list that is about to become the denylist. A stage counts for as long as it has an owner.
local function is_staged(normalized_name)
  return redis.call('HEXISTS', stage_key(), normalized_name) == 1 and redis.call('EXISTS', stage_owner_key()) == 1
end

-- Makes the stage the denylist. The old list is renamed and unlinked: renaming over it would free it at once, however
-- long it is.
local function commit_stage(index)
  if redis.call('EXISTS', denylist_key(index)) == 1 then
    redis.call('RENAME', denylist_key(index), replaced_denylist_key())
    redis.call('UNLINK', replaced_denylist_key())
  end
  if redis.call('EXISTS', stage_key()) == 1 then redis.call('RENAME', stage_key(), denylist_key(index)) end
  redis.call('DEL', stage_owner_key())
end
