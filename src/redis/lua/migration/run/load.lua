#!lua
-- @include names store
-- Writes hashes of an organization that is being loaded, each whole: what an earlier attempt has left is replaced.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  name of the run that loads it, line feed, the epoch under which it does
-- ARGV[2]  profiles | names
-- ARGV[3]  JSON, an array for each hash: user | number of the bucket, then fields, name and value in turn
--
-- 'loaded', or 'lost' where the organization is not this run's to load any more: nothing was done
if redis.call('GET', loading_key()) ~= ARGV[1] then return 'lost' end
local function first_bucket_key(bucket) return names_key('0', bucket) end
local key_of = ARGV[2] == 'names' and first_bucket_key or profile_key
for _, row in ipairs(cjson.decode(ARGV[3])) do
  local key = key_of(row[1])
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(row, 2))
end
return 'loaded'
