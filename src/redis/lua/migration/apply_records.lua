#!lua
-- @include source
-- Writes records other than profiles. What was made, set or revoked here stays. A denied name that is in use stays with
-- its user (contract 4.4 allows that state).
--
-- {'frozen'}                   denylist: nothing was done: read the settings again and retry
-- {'applied', outcomes, used}  outcomes: a word for each record: created, updated, unchanged, kept (made, set or
--                              revoked here); used: positions (from 0) of denied names in use

-- Each row, '' for an unset field:
--   organizations  comparison (exact | case-insensitive, which stays as it is), min, max, pattern, template and ownership
--                  as stored, then the default of each
--   api-keys       SHA-256 in hex, public id if it has none, role, user, client, expiry in ms
--   objects        reference, URL
--   collections    user, reference
--   denylist       denied name, normalized name
local entity, used = ARGV[5], {}
if entity == 'denylist' and names_refused() then return { 'frozen' } end

local function set_fields(key, fields, row, first)
  for position, field in ipairs(fields) do
    local value = row[first + position - 1]
    if value == '' then
      redis.call('HDEL', key, field)
    elseif value then
      redis.call('HSET', key, field, value)
    end
  end
end

local function is_same(have, row, first, last)
  for position = first, last do
    if (have[position - first + 1] or '') ~= row[position] then return false end
  end
  return true
end

local apply = {
  organizations = function(row)
    local have = redis.call('HMGET', settings_key(), 'comparison', 'min', 'max', 'pattern', 'template', 'ownership', 'b')
    if not have[1] then
      if is_dry then return 'created' end
      error('the organization does not exist')
    end
    for position = 1, 6 do have[position] = have[position] or row[position + 6] end
    if is_same(have, row, 1, 6) then return 'unchanged' end
    if have[7] then return 'kept' end
    if not is_dry then set_fields(settings_key(), { 'min', 'max', 'pattern', 'template', 'ownership' }, row, 2) end
    return 'updated'
  end,
  ['api-keys'] = function(row)
    local record = api_key_key(row[1])
    local have = redis.call('HMGET', record, 'r', 'u', 'c', 'e', 'x', 'b', 'i')
    local is_new = not have[1]
    if not is_new then
      if have[5] then return 'kept' end
      if have[7] and is_same(have, row, 3, 6) then return 'unchanged' end
      if have[6] then return 'kept' end
    end
    if not is_dry then
      -- Without a public id, no caller is found by the key.
      if not have[7] then
        redis.call('HSET', record, 'i', row[2])
        redis.call('HSETNX', record, 't', now_ms())
        redis.call('HSET', api_key_ids_key(), row[2], row[1])
      end
      set_fields(record, { 'r', 'u', 'c', 'e' }, row, 3)
    end
    return is_new and 'created' or 'updated'
  end,
  objects = function(row)
    local have = redis.call('HGET', objects_key(), row[1])
    if have == row[2] then return 'unchanged' end
    if have and is_local_write('o', row[1]) then return 'kept' end
    if not is_dry then redis.call('HSET', objects_key(), row[1], row[2]) end
    return have and 'updated' or 'created'
  end,
  collections = function(row)
    local is_there = redis.call('SISMEMBER', collection_key(row[1]), row[2]) == 1
    if not is_there and not is_dry then redis.call('SADD', collection_key(row[1]), row[2]) end
    return is_there and 'unchanged' or 'created'
  end,
  denylist = function(row, position)
    local name, normalized_name = row[1], row[2]
    local spelling = spelling_of(name, normalized_name)
    local have = redis.call('HGET', denylist_key(index), normalized_name)
    if have ~= spelling and is_name_ours(normalized_name, have) then return 'kept' end
    if holder_of(index, normalized_name) then used[#used + 1] = position - 1 end
    if have == spelling then return 'unchanged' end
    if not is_dry then redis.call('HSET', denylist_key(index), normalized_name, spelling) end
    return have and 'updated' or 'created'
  end,
}

local outcomes = {}
for position, row in ipairs(rows) do outcomes[position] = apply[entity](row, position) end
return { 'applied', outcomes, used }
