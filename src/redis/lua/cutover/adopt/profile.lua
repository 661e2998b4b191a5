#!lua
-- @include adoptions change
-- Makes a profile say what the legacy service shows of it. What the legacy service cannot show is kept: an unverified
-- wallet, and a picture or reference whose URL is the one shown. The legacy service decides about names: settings and
-- denylist are not asked, and a name that another user has here is taken from that user.
--
-- 'stale' 'frozen'     nothing was done: draw again, and retry
-- 'again'              a denylist change came between: draw and read again
-- 'superseded'         a later adoption was applied before
-- 'adopted'
-- 'conflict'           adopted without the name: the user who has it took it from this one, and both show it

-- The number of the adoption, when it was drawn (ms), and the number of the change that it settles, '' for none.
local user, number, drawn_at, settles = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
-- Of that change: '1' if it was sent as a form, which may have brought a picture.
local form = ARGV[8]
-- The current username as the caller saw it, '' for none, and normalized.
local from, normalized_from = ARGV[5], ARGV[6]
-- {name, normalizedName, picture, avatar, avatarUrl, wallet}, absent if unset.
local shown = cjson.decode(ARGV[7])
local refused = names_refused()
if refused then return refused end
if number <= barrier() then return 'again' end
-- Also where it was copied after the change was marked: its request may have been held up longer than the mark allows.
if form == '1' then drop_copy(user) end
local profile = profile_key(user)
local have = by_name(redis.call('HGETALL', profile))
if (tonumber(have.as) or 0) >= number then
  settle(user, settles, drawn_at)
  return 'superseded'
end
if (have.u or '') ~= from then return 'stale' end

local function set(field, value)
  if value then redis.call('HSET', profile, field, value) else redis.call('HDEL', profile, field) end
end

local has_conflict = false
if shown.name then
  local holder = holder_of(index, shown.normalizedName)
  if holder and holder ~= user then
    local lost = redis.call('HGET', lost_names_key(), user) or ''
    has_conflict = string.match(lost, '^%d+\n(.*)$') == shown.normalizedName .. '\n' .. holder
    if not has_conflict then take_name(index, shown.normalizedName, holder, user) end
  end
end
local name = not has_conflict and shown.name
if have.u and (not name or normalized_from ~= shown.normalizedName) and holder_of(index, normalized_from) == user then
  release(index, normalized_from)
end
if name then claim(index, shown.normalizedName, user) end
set('u', name)

local is_kept = shown.picture and (
  (have.pf and have.po == shown.picture and not is_outdated_copy(have.pt))
  or (have.pr and (url_of(have.pr) == shown.picture or have.pu == shown.picture)))
if not is_kept then
  if have.pf then redis.call('ZADD', unreferenced_pictures_key(), now_ms(), have.pf) end
  redis.call('HDEL', profile, 'pf', 'pr', 'po', 'pt')
  set('pu', shown.picture)
end

set('ar', shown.avatar)
set('au', shown.avatar and shown.avatarUrl ~= url_of(shown.avatar) and shown.avatarUrl)
if shown.wallet then redis.call('HDEL', profile, 'wu') end
set('w', shown.wallet)
-- Nobody knows when the legacy service made the change, and it was not made here.
redis.call('HDEL', profile, 'b')
redis.call('HSET', profile, 't', '', 'as', number, 'at', now_ms())

settle(user, settles, drawn_at)
redis.call('HDEL', differing_users_key(), user)
redis.call('HDEL', failed_adoptions_key(), user)
if has_conflict then return 'conflict' end
redis.call('HDEL', lost_names_key(), user)
return 'adopted'
