#!lua
-- @include names store
-- Writes hashes of an organization that is being loaded. A profile comes whole, and replaces what an earlier attempt has
-- left; a bucket comes in pieces, which are the same in every attempt.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  what the loading key holds for the attempt that loads it (begin_load.lua)
-- ARGV[2]  profiles | names
-- ARGV[3]  JSON, an array for each hash: user | number of the bucket, then fields, name and value in turn; a profile
--          without fields is removed
--
-- 'loaded', or 'lost' where the organization is not this attempt's to load any more: nothing was done
if redis.call('GET', loading_key()) ~= ARGV[1] then return 'lost' end
local is_names = ARGV[2] == 'names'
for _, row in ipairs(cjson.decode(ARGV[3])) do
  local key = is_names and names_key('0', row[1]) or profile_key(row[1])
  if is_names then
    redis.call('HSET', key, unpack(row, 2))
  elseif #row == 1 then
    redis.call('DEL', key)
  -- An existing key has a field of the row, its time, or is not a hash: then fewer fields are new.
  elseif redis.pcall('HSET', key, unpack(row, 2)) ~= (#row - 1) / 2 then
    redis.call('DEL', key)
    redis.call('HSET', key, unpack(row, 2))
  end
end
return 'loaded'
