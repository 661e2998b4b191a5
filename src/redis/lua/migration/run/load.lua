#!lua
-- Writes hashes of an organization that is being loaded. A profile comes whole, and replaces what an earlier attempt has
-- left; a bucket comes in pieces, which are the same in every attempt.
--
-- 'loaded', or 'lost' where this attempt may no longer load the organization: nothing was done

-- The claim under which it is loaded (claim.lua); profiles | names.
local claim, kind = unpack(ARGV, 1, 2)
-- One array for all hashes: for each the number of its strings, then these: user | number of the bucket, and fields,
-- name and value in turn; a profile without fields is removed.
local rows = cjson.decode(ARGV[3])
if redis.call('GET', loading_key()) ~= claim then return 'lost' end
local is_names = kind == 'names'
local length, at = #rows, 1
while at <= length do
  local id, first, last = rows[at + 1], at + 2, at + rows[at]
  local key = is_names and names_key('0', id) or profile_key(id)
  if is_names then
    redis.call('HSET', key, unpack(rows, first, last))
  elseif first > last then
    redis.call('DEL', key)
  -- An existing key has a field of the row, its time, or is not a hash: then fewer fields are new.
  elseif redis.pcall('HSET', key, unpack(rows, first, last)) ~= (last - first + 1) / 2 then
    redis.call('DEL', key)
    redis.call('HSET', key, unpack(rows, first, last))
  end
  at = last + 1
end
return 'loaded'
