#!lua
-- @include names store
-- Writes hashes of an organization that is being loaded. A profile comes whole, and replaces what an earlier attempt has
-- left; a bucket comes in pieces, which are the same in every attempt.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  name of the run that loads it, line feed, the epoch under which it does
-- ARGV[2]  profiles | names
-- ARGV[3]  JSON, an array for each hash: user | number of the bucket, then fields, name and value in turn
--
-- 'loaded', or 'lost' where the organization is not this run's to load any more: nothing was done
if redis.call('GET', loading_key()) ~= ARGV[1] then return 'lost' end
local is_names = ARGV[2] == 'names'
for _, row in ipairs(cjson.decode(ARGV[3])) do
  if is_names then
    redis.call('HSET', names_key('0', row[1]), unpack(row, 2))
  else
    local key = profile_key(row[1])
    -- An existing key has a field of the row, its time, or is not a hash: then fewer fields are new.
    if redis.pcall('HSET', key, unpack(row, 2)) ~= (#row - 1) / 2 then
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(row, 2))
    end
  end
end
return 'loaded'
