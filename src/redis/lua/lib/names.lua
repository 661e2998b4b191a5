-- The username index and the denylist. Both hold comparison forms, which the caller computes; `index` is the
-- generation of the index that his forms belong to.

local function bucket(index, form)
  return KEYS[1] .. 'n' .. index .. ':' .. string.sub(redis.sha1hex(form), 1, 4)
end

local function holder_of(index, form)
  return redis.call('HGET', bucket(index, form), form)
end

local function hold(index, form, user)
  redis.call('HSET', bucket(index, form), form, user)
end

local function let_go(index, form)
  redis.call('HDEL', bucket(index, form), form)
end

local function is_denied(index, form)
  return redis.call('HEXISTS', KEYS[1] .. 'd' .. index, form) == 1
end

-- A name on a list that is about to become the denylist: whether it may be claimed is not yet decided.
local function is_staged(form)
  return redis.call('HEXISTS', KEYS[1] .. 'stage', form) == 1
end

-- Why forms of this generation must not be written now: 'stale' where the organization has another comparison
-- by now, 'frozen' while its index is being rebuilt, nil where all is well.
local function fence(index)
  local now = redis.call('HMGET', KEYS[1] .. 'settings', 'index', 'frozen')
  if (now[1] or '0') ~= index then return 'stale' end
  if now[2] and tonumber(now[2]) > tonumber(redis.call('TIME')[1]) * 1000 then return 'frozen' end
  return nil
end
