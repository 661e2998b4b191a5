#!lua flags=no-writes
-- @include names store
-- Profiles as they are stored, with who has their usernames.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the forms belong to
-- ARGV[2]  JSON, an array for each profile: user, form ('' to ask for nobody)
--
-- for each {fields, holder}: fields as HGETALL gives them, empty where there is no profile; holder of the form or
-- false
local found = {}
for position, row in ipairs(cjson.decode(ARGV[2])) do
  found[position] = {
    redis.call('HGETALL', profile_key(row[1])),
    row[2] ~= '' and holder_of(ARGV[1], row[2]) or false,
  }
end
return found
