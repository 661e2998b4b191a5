#!lua
-- @reply json
-- @include adoptions
-- Begins an adoption: draws its number, before the legacy service is read.
--
-- {number, time, index, comparison, username, unsettled, hasRival}, by name
--   time by the store's clock; index and comparison of the settings; the user's current username, '' if unset;
--   unsettled: for how many ms another change of the user may be in flight, 0 if none is; hasRival: whether one was
--   accepted after this one was forwarded, so that either may have been made last

-- own: the number of the change that the adoption belongs to, '' for none.
local user, own = unpack(ARGV)
local now = tonumber(now_ms())
local number = draw_number()
local pending, has_rival = 0, false
local marks = {}
for mark in string.gmatch(redis.call('HGET', unsettled_key(), user) or '', '%S+') do
  local change, due, at, drawn = string.match(mark, '^(%d+):(%d+):?(%d*):?(%d*)$')
  if change == own then
    mark = table.concat({ change, due, at, number }, ':')
  else
    pending = math.max(pending, tonumber(due) - now)
    has_rival = has_rival or own ~= '' and drawn ~= '' and tonumber(drawn) > tonumber(own)
  end
  marks[#marks + 1] = mark
end
if own ~= '' and #marks > 0 then redis.call('HSET', unsettled_key(), user, table.concat(marks, ' ')) end
local settings = redis.call('HMGET', settings_key(), 'index', 'comparison')
return {
  number = number, time = now, index = settings[1] or '0', comparison = settings[2] or 'exact',
  username = redis.call('HGET', profile_key(user), 'u') or '', unsettled = pending, hasRival = has_rival,
}
