-- @include keys names
-- For looking at what an outside hand may have broken: a key of the wrong type counts as none.
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
