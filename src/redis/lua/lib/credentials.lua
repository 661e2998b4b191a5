-- @include clock keys
-- Looks a key up by its SHA-256. Returns {id, role, user|false, client|false}, or nil where the key is
-- unknown, revoked or expired: callers cannot tell these apart, nor should they.
local function credentials(sha256)
  local key = redis.call('HMGET', api_key_key(sha256), 'i', 'r', 'u', 'c', 'x', 'e')
  if not key[1] or key[5] then return nil end
  if key[6] and tonumber(key[6]) <= tonumber(now_ms()) then return nil end
  return { key[1], key[2], key[3], key[4] }
end
