-- What was written here, through the bridge or by its operator, is marked: a migration leaves it alone. Marks of the
-- catalogue ('o' reference) and of the collections ('c' user and reference) hold for good.
local function mark_local_write(kind, what)
  redis.call('SADD', local_writes_key(), kind .. '\n' .. what)
end

local function is_local_write(kind, what)
  return redis.call('SISMEMBER', local_writes_key(), kind .. '\n' .. what) == 1
end

-- Marks of names that were denied or removed, by their normalized name, and of the whole denylist ('') hold until the
-- authority changes: each is the epoch under which it was made, and one below `marks_from` does not count.
local function mark_denylist_write(normalized_name, epoch)
  if normalized_name == '' then
    redis.call('UNLINK', denylist_writes_key())
  elseif redis.call('HGET', denylist_writes_key(), '') == tostring(epoch) then
    -- Once the whole denylist was written here, no mark for a single name of it says more.
    return
  end
  redis.call('HSET', denylist_writes_key(), normalized_name, epoch)
end

local function is_denylist_write(normalized_name, marks_from)
  local epoch = redis.call('HGET', denylist_writes_key(), normalized_name)
  if epoch then return tonumber(epoch) >= marks_from end
  -- From before marks were epochs.
  return marks_from == 0 and is_local_write('d', normalized_name)
end
