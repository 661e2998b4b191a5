#!lua
-- @wait replicas
-- @include audit names names_safely store
-- Puts a user's name into the index. Where another user has it too, the profile changed last keeps it, and the other
-- loses it.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the form belongs to
-- ARGV[2]  user
-- ARGV[3]  username
-- ARGV[4]  form
-- ARGV[5]  who the index says has the form, '' for nobody
-- ARGV[6]  the username that user was seen with, '' for none
-- ARGV[7]  '1' where its form is the same
--
-- 'stale', 'frozen', 'staged', 'changed'      nothing was done
-- 'repaired'
local index, user, name, form, rival = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local refused = check_generation(index)
if refused then return refused end
if is_staged(form) then return 'staged' end
if fields_of(user, 'u')[1] ~= name or (holder_of_safely(index, form) or '') ~= rival then return 'changed' end
local other = rival ~= '' and fields_of(rival, 'u', 't') or {}
if (other[1] or '') ~= ARGV[6] then return 'changed' end

local keeper, loser = user, false
if ARGV[7] == '1' then
  local mine, theirs = tonumber(fields_of(user, 't')[1] or 0) or 0, tonumber(other[2] or 0) or 0
  if mine > theirs then loser = rival else keeper, loser = rival, user end
end
local key = bucket(index, form)
if not is_type(key, 'hash') then redis.call('UNLINK', key) end
release(index, form)
claim(index, form, keeper)
if loser then
  redis.call('HDEL', profile_key(loser), 'u')
  redis.call('HSET', profile_key(loser), 't', now_ms(), 'b', number_in_force())
  local lost = loser == user and name or other[1]
  audit('repair', 'operator', 'removed', 'username', 'user', loser, 'username', lost, 'kept-by', keeper)
end
return 'repaired'
