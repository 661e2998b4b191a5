-- @include names store
-- For reading what may have been damaged: a key of the wrong type counts as absent.
local function fields_of(user, ...)
  local key = profile_key(user)
  if not is_type(key, 'hash') then return {} end
  return redis.call('HMGET', key, ...)
end

local function holder_of_safely(index, form)
  local key = bucket(index, form)
  if not is_type(key, 'hash') then return false end
  return redis.call('HGET', key, form)
end
