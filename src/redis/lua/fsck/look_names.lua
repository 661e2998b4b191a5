#!lua flags=no-writes
-- @include names names_safely
-- What profiles and index say of some users and forms, all as of one instant.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the forms belong to
-- ARGV[2]  number of the bucket that is examined, '' for none
-- ARGV[3…] two for each: user, form
--
-- {'stale'}
-- {'seen', rows, buckets}
--   rows      for each {the user's username, who the index says has the form, that user's username, place}, false
--             where there is none. place: 'found' where the bucket gives the form to the user and is where lookups
--             go, 'misplaced' where they go to another, false where the bucket does not give it to the user
--   buckets   the number of buckets in the settings, false where they have none
local index = ARGV[1]
if check_generation(index) == 'stale' then return { 'stale' } end
local examined = ARGV[2] ~= '' and names_key(index, ARGV[2])
local rows = {}
for i = 3, #ARGV, 2 do
  local user, form = ARGV[i], ARGV[i + 1]
  local holder = holder_of_safely(index, form)
  local place = false
  if examined and is_type(examined, 'hash') and redis.call('HGET', examined, form) == user then
    place = bucket(index, form) == examined and 'found' or 'misplaced'
  end
  rows[#rows + 1] = { fields_of(user, 'u')[1] or false, holder, holder and fields_of(holder, 'u')[1] or false, place }
end
return { 'seen', rows, redis.call('HGET', settings_key(), 'n' .. index) }
