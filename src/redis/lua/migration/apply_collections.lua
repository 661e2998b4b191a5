#!lua
-- @include change
-- Puts objects into users' collections.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  write | dry
-- ARGV[2]  JSON, an array for each object: user, reference
--
-- a word for each: created, unchanged
local is_dry = ARGV[1] == 'dry'
local outcomes = {}
for position, row in ipairs(cjson.decode(ARGV[2])) do
  local collection = collection_key(row[1])
  local is_new
  if is_dry then
    is_new = redis.call('SISMEMBER', collection, row[2]) == 0
  else
    is_new = redis.call('SADD', collection, row[2]) == 1
  end
  outcomes[position] = is_new and 'created' or 'unchanged'
end
return outcomes
