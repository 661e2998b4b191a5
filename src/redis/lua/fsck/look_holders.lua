#!lua flags=no-writes
-- @include keys names names_safely
-- The names that the users have whom a bucket of the index names.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index
-- ARGV[2]  number of the bucket
-- ARGV[3…] two for each entry: form, user
--
-- {'stale'}
-- {'seen', verdicts}                for each {'changed'} (the entry is another by now), {'named', username or
--                                   false}, or {'misplaced', username or false} (nobody looks in this bucket for it)
if check_generation(ARGV[1]) == 'stale' then return { 'stale' } end
local key = names_key(ARGV[1], ARGV[2])
local verdicts = {}
for i = 3, #ARGV, 2 do
  local form, user = ARGV[i], ARGV[i + 1]
  if not is_type(key, 'hash') or redis.call('HGET', key, form) ~= user then
    verdicts[#verdicts + 1] = { 'changed' }
  else
    local verdict = bucket(ARGV[1], form) == key and 'named' or 'misplaced'
    verdicts[#verdicts + 1] = { verdict, fields_of(user, 'u')[1] or false }
  end
end
return { 'seen', verdicts }
