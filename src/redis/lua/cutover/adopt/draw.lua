#!lua
-- @reply json
-- @include adoptions names
-- Begins an adoption: draws its number, before the legacy service is read.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
--
-- {number, time, index, comparison, username, unsettled}
--   time by the store's clock; index and comparison of the settings, the user's current username, false where unset;
--   unsettled: for how many ms a change of the user may be in flight, 0 where none is
local now = tonumber(now_ms())
local pending = 0
for _, at in string.gmatch(redis.call('HGET', unsettled_key(), ARGV[1]) or '', '(%d+):(%d+)%S*') do
  pending = math.max(pending, tonumber(at) - now)
end
local settings = redis.call('HMGET', settings_key(), 'index', 'comparison')
return { draw_number(), now, settings[1], settings[2], redis.call('HGET', profile_key(ARGV[1]), 'u'), pending }
