#!lua flags=no-writes
-- @include names names_safely
-- Whether the index knows the names of some users.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the forms belong to
-- ARGV[2…] three for each user: user, username, form
--
-- {'stale'}
-- {'seen', verdicts}                for each {'changed'} (the user has another name by now), {'indexed'}, {'free'}
--                                   or {'held', holder, holder's username or false}
local index = ARGV[1]
if check_generation(index) == 'stale' then return { 'stale' } end
local verdicts = {}
for i = 2, #ARGV, 3 do
  local user, name, form = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local holder = holder_of_safely(index, form)
  local verdict
  if fields_of(user, 'u')[1] ~= name then
    verdict = { 'changed' }
  elseif holder == user then
    verdict = { 'indexed' }
  elseif not holder then
    verdict = { 'free' }
  else
    verdict = { 'held', holder, fields_of(holder, 'u')[1] or false }
  end
  verdicts[#verdicts + 1] = verdict
end
return { 'seen', verdicts }
