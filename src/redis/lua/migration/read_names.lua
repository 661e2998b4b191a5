#!lua flags=no-writes
-- Looks a bucket of the name index up in the profiles.
--
-- for each entry whose user has another username than exactly the normalized name, {normalized name, user, username or
-- false}
local generation, number = unpack(ARGV)
local entries = redis.call('HGETALL', names_key(generation, number))
local others = {}
for i = 1, #entries, 2 do
  local name = redis.call('HGET', profile_key(entries[i + 1]), 'u')
  if name ~= entries[i] then others[#others + 1] = { entries[i], entries[i + 1], name } end
end
return others
