-- @include store
-- What was written here, through the bridge or by its operator: a migration leaves it alone. Kinds: 'o' reference,
-- 'c' user and reference, 'd' comparison form of a denied or undenied name, 'd' and '' the whole denylist.
local function mark_local_write(kind, what)
  -- Once the whole denylist was written here, no mark for a single name of it says more.
  if kind == 'd' and what ~= '' and redis.call('SISMEMBER', local_writes_key(), 'd\n') == 1 then return end
  redis.call('SADD', local_writes_key(), kind .. '\n' .. what)
end

local function is_local_write(kind, what)
  return redis.call('SISMEMBER', local_writes_key(), kind .. '\n' .. what) == 1
end
