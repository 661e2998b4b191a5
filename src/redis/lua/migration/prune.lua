#!lua
-- @include source
-- Removes what is no longer in the source. What was written here stays, and so does what was adopted from the legacy
-- service since the source's snapshot. An organization's settings stay in any case; a dry call says whether they were
-- written here.
--
-- {'frozen'}                        nothing was done: read the settings again and retry
-- {'pruned', outcomes}              a word for each record: removed, kept

-- Each row:
--   profiles       user, username, normalized name
--   denylist       normalized name
--   api-keys       SHA-256 in hex
--   objects        reference
--   collections    user, reference
--   organizations  ''
local entity = ARGV[5]
if names_refused() then return { 'frozen' } end

local prune = {
  profiles = function(user, name, normalized_name)
    local profile = profile_key(user)
    local have = redis.call('HMGET', profile, 'u', 'b', 'pf', 't', 'at')
    if is_kept(have[2], have[5]) or not have[4] or (have[1] or '') ~= name then return false end
    if is_dry then return true end
    if name ~= '' and holder_of(index, normalized_name) == user then release(index, normalized_name) end
    if have[3] then redis.call('ZADD', unreferenced_pictures_key(), now_ms(), have[3]) end
    return redis.call('DEL', profile) == 1
  end,
  denylist = function(normalized_name)
    if is_name_ours(normalized_name, true) then return false end
    return is_dry or redis.call('HDEL', denylist_key(index), normalized_name) == 1
  end,
  ['api-keys'] = function(sha256)
    local record = api_key_key(sha256)
    local have = redis.call('HMGET', record, 'i', 'b', 'x')
    if not have[1] or have[2] or have[3] then return false end
    if is_dry then return true end
    redis.call('HDEL', api_key_ids_key(), have[1])
    return redis.call('DEL', record) == 1
  end,
  objects = function(reference)
    if is_local_write('o', reference) then return false end
    return is_dry or redis.call('HDEL', objects_key(), reference) == 1
  end,
  collections = function(user, reference)
    if is_local_write('c', user .. '\n' .. reference) then return false end
    return is_dry or redis.call('SREM', collection_key(user), reference) == 1
  end,
  organizations = function() return is_dry and not redis.call('HGET', settings_key(), 'b') end,
}

local outcomes = {}
for position, row in ipairs(rows) do
  outcomes[position] = prune[entity](unpack(row)) and 'removed' or 'kept'
end
return { 'pruned', outcomes }
