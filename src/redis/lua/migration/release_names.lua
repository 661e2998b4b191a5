#!lua
-- @include keys names
-- Takes usernames from users who get another one in the source, so that whoever has it there can be given it. The
-- users get theirs when their own profiles are brought in.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the forms belong to
-- ARGV[2]  JSON, an array for each name: user, username, form
--
-- {'stale'} {'frozen'}              nothing was done: look again, and come back
-- {'released', count}               names that are free now; not those that the bridge has given since
local refused = check_generation(ARGV[1])
if refused then return { refused } end
local count = 0
for _, row in ipairs(cjson.decode(ARGV[2])) do
  local profile = profile_key(row[1])
  local now = redis.call('HMGET', profile, 'u', 'b')
  if now[1] == row[2] and not now[2] and holder_of(ARGV[1], row[3]) == row[1] then
    redis.call('HDEL', profile, 'u')
    release(ARGV[1], row[3])
    count = count + 1
  end
end
return { 'released', count }
