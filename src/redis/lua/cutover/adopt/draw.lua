#!lua
-- @reply json
-- @include adoptions names
-- Begins an adoption: draws its number, before the legacy service is read.
--
-- {number, time, index, comparison, username, unsettled}, by name
--   time by the store's clock; index and comparison of the settings; the user's current username, '' if unset;
--   unsettled: for how many ms a change of the user may be in flight, 0 if none is
local user = ARGV[1]
local now = tonumber(now_ms())
local pending = 0
for _, at in string.gmatch(redis.call('HGET', unsettled_key(), user) or '', '(%d+):(%d+)%S*') do
  pending = math.max(pending, tonumber(at) - now)
end
local settings = redis.call('HMGET', settings_key(), 'index', 'comparison')
return {
  number = draw_number(), time = now, index = settings[1] or '0', comparison = settings[2] or 'exact',
  username = redis.call('HGET', profile_key(user), 'u') or '', unsettled = pending,
}
