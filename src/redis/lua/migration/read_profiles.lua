#!lua flags=no-writes
-- @include names store
-- Profiles as they are stored, with who has their usernames. A call ends early if they are large.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the normalized names belong to
-- ARGV[2]  JSON, an array for each profile: user, normalized name ('' to ask for nobody)
--
-- for each, or for the first ones only, {fields, holder}: fields as HGETALL gives them, empty where there is no
-- profile; holder of the normalized name or false
local enough = 256 * 1024
local found, length = {}, 0
for position, row in ipairs(cjson.decode(ARGV[2])) do
  local fields = redis.call('HGETALL', profile_key(row[1]))
  found[position] = { fields, row[2] ~= '' and holder_of(ARGV[1], row[2]) or false }
  for _, text in ipairs(fields) do length = length + #text end
  if length >= enough then break end
end
return found
