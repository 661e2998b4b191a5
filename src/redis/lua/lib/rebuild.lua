-- @include store
-- While a rebuild of the name index holds its key, no name may change (lib/names.lua, check_generation). Renews the
-- key's lease; false where this rebuild does not hold it any more.
local function renew_rebuild(token, lease)
  if redis.call('GET', rebuild_key()) ~= token then return false end
  redis.call('PEXPIRE', rebuild_key(), lease)
  return true
end
