-- While the name index is rebuilt no name may change (lib/names.lua, fence). Renews the freeze, if it is still
-- this tool's.
local function freeze(token, lease)
  if redis.call('GET', KEYS[1] .. 'reindex') ~= token then return false end
  redis.call('PEXPIRE', KEYS[1] .. 'reindex', lease)
  redis.call('HSET', KEYS[1] .. 'settings', 'frozen', string.format('%.0f', tonumber(now_ms()) + tonumber(lease)))
  return true
end
