#!lua flags=no-writes
-- @include names
-- Profiles as they are stored, with who has their usernames. A call ends early if they are large.
--
-- for each, or for the first ones only, {fields, holder}: fields as HGETALL gives them, empty where there is no
-- profile; holder of the normalized name or false
local generation, rows = unpack(ARGV) -- JSON, an array for each profile: user, normalized name ('' to ask for nobody)
local enough = 256 * 1024
local found, length = {}, 0
for position, row in ipairs(cjson.decode(rows)) do
  local fields = redis.call('HGETALL', profile_key(row[1]))
  found[position] = { fields, row[2] ~= '' and holder_of(generation, row[2]) or false }
  for _, text in ipairs(fields) do length = length + #text end
  if length >= enough then break end
end
return found
