-- @include clock keys
-- While the name index is rebuilt no name may change (lib/names.lua, fence). Renews the freeze, if it is still
-- this tool's.
local function freeze(token, lease)
  if redis.call('GET', rebuild_key()) ~= token then return false end
  redis.call('PEXPIRE', rebuild_key(), lease)
  redis.call('HSET', settings_key(), 'frozen', string.format('%.0f', tonumber(now_ms()) + tonumber(lease)))
  return true
end
