#!lua
-- @include adoptions local_writes change
-- Removes what is no longer in the source. What was written here stays, and so do profiles that were adopted from the
-- legacy service.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  profiles | denylist | api-keys | objects | collections
-- ARGV[2]  JSON, an array for each record: user, username, form | form | SHA-256 | reference | user, reference
-- ARGV[3]  when the source's snapshot was opened, ms; '' where unknown. Where a denylist change of the legacy service
--          was adopted later, the whole list stays
-- ARGV[4]  number below which marks of what was written here do not count (lib/local_writes.lua)
--
-- {'stale'} {'frozen'}              nothing was done: look again, and retry
-- {'pruned', count}                 how many were removed
local refused = names_refused()
if refused then return { refused } end
local marks_from = tonumber(ARGV[4])

local prune = {
  profiles = function(user, name, form)
    local profile = profile_key(user)
    local now = redis.call('HMGET', profile, 'u', 'b', 'pf', 't', 'at')
    if (now[2] and tonumber(now[2]) >= marks_from) or now[5] or not now[4] or (now[1] or '') ~= name then return false end
    if name ~= '' and holder_of(index, form) == user then release(index, form) end
    if now[3] then redis.call('ZADD', unreferenced_pictures_key(), now_ms(), now[3]) end
    return redis.call('DEL', profile) == 1
  end,
  denylist = function(form)
    if is_denylist_newer(ARGV[3]) then return false end
    if is_denylist_write('', marks_from) or is_denylist_write(form, marks_from) then return false end
    return redis.call('HDEL', denylist_key(index), form) == 1
  end,
  ['api-keys'] = function(sha256)
    local record = api_key_key(sha256)
    local now = redis.call('HMGET', record, 'i', 'b', 'x')
    if not now[1] or now[2] or now[3] then return false end
    redis.call('HDEL', api_key_ids_key(), now[1])
    return redis.call('DEL', record) == 1
  end,
  objects = function(reference)
    if is_local_write('o', reference) then return false end
    return redis.call('HDEL', objects_key(), reference) == 1
  end,
  collections = function(user, reference)
    if is_local_write('c', user .. '\n' .. reference) then return false end
    return redis.call('SREM', collection_key(user), reference) == 1
  end,
}

local count = 0
for _, row in ipairs(cjson.decode(ARGV[2])) do
  if prune[ARGV[1]](unpack(row)) then count = count + 1 end
end
return { 'pruned', count }
