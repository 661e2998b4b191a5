#!lua
-- @include change
-- Writes API keys. One that was made or revoked here stays as it is.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  write | dry
-- ARGV[2]  JSON, an array for each key: SHA-256 in hex, public id if it is new, role, user, client, expiry in ms ('' for
--          none)
--
-- a word for each key: created, updated, unchanged, kept (made or revoked here)
local is_dry = ARGV[1] == 'dry'
local outcomes = {}
local function apply(row)
  local record = api_key_key(row[1])
  local have = redis.call('HMGET', record, 'r', 'u', 'c', 'e', 'x', 'b')
  local is_new = not have[1]
  if not is_new then
    if have[5] then return 'kept' end
    if have[1] == row[3] and (have[2] or '') == row[4] and (have[3] or '') == row[5] and (have[4] or '') == row[6] then
      return 'unchanged'
    end
    if have[6] then return 'kept' end
  end
  if is_dry then return is_new and 'created' or 'updated' end
  if is_new then
    redis.call('HSET', record, 'i', row[2], 't', now_ms())
    redis.call('HSET', api_key_ids_key(), row[2], row[1])
  end
  redis.call('HSET', record, 'r', row[3])
  for position, field in ipairs({ 'u', 'c', 'e' }) do
    local value = row[position + 3]
    if value == '' then redis.call('HDEL', record, field) else redis.call('HSET', record, field, value) end
  end
  return is_new and 'created' or 'updated'
end
for position, row in ipairs(cjson.decode(ARGV[2])) do outcomes[position] = apply(row) end
return outcomes
