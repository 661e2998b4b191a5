#!lua flags=no-writes
-- @include names store
-- Looks a bucket of the name index up in the profiles.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index
-- ARGV[2]  number of the bucket
--
-- {count, others}  how many entries the bucket has; others: for each whose user has another username than exactly the
--                  normalized name, {normalized name, user, username or false}
local entries = redis.call('HGETALL', names_key(ARGV[1], ARGV[2]))
local others = {}
for i = 1, #entries, 2 do
  local name = redis.call('HGET', profile_key(entries[i + 1]), 'u')
  if name ~= entries[i] then others[#others + 1] = { entries[i], entries[i + 1], name } end
end
return { #entries / 2, others }
