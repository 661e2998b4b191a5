-- The store's clock, in milliseconds: one clock for all instances. As text, as Redis stores it.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6, -4)
end
