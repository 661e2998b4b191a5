-- The store's clock, in milliseconds: one clock for all instances.
local function now_ms()
  local time = redis.call('TIME')
  return string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
end
