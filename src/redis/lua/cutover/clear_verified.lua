#!lua
-- @include adoptions
-- Removes a part of what a clean verify has settled: everything that was on record before its snapshot was opened.
-- Removals of denied names stay, and keys that were refused; those that the source has are marked.
--
-- the cursor of the next call, 0 at the end

-- unsettled | differing | failed | lost-names | gaps | denied-names | refused-keys; the cursor, 0 at first; when the snapshot was
-- opened (ms).
local what, cursor, opened_at = ARGV[1], ARGV[2], tonumber(ARGV[3])
local keys = {
  unsettled = unsettled_key(), differing = differing_users_key(), failed = failed_adoptions_key(),
  ['lost-names'] = lost_names_key(), gaps = gaps_key(), ['denied-names'] = adoptions_key(),
  ['refused-keys'] = refused_keys_key(),
}
local function time_of(value) return cjson.decode(value).at end
local recorded_at = {
  differing = time_of,
  failed = time_of,
  ['lost-names'] = function(value) return tonumber(string.match(value, '^%d+')) end,
  gaps = function(value) return cjson.decode(value).last end,
  ['denied-names'] = function(value, field) return field:find('^name:') and tonumber(value) or opened_at end,
}

-- Something in front of the legacy service may have answered 403 for it. The source has every key that was not created
-- here; the refusal stays on record, since the source may not tell which keys the legacy service refuses.
local function confirm_key(sha256, value)
  local entry = cjson.decode(value)
  if entry.status ~= 403 or entry.at >= opened_at then return end
  if redis.call('HGET', api_key_key(sha256), 'b') then return end
  entry.isInSource = true
  redis.call('HSET', refused_keys_key(), sha256, cjson.encode(entry))
end

local index = redis.call('HGET', settings_key(), 'index') or '0'
local found = redis.call('HSCAN', keys[what], cursor, 'COUNT', 500)
for i = 1, #found[2], 2 do
  local field, value = found[2][i], found[2][i + 1]
  if what == 'unsettled' then
    settle(field, '', opened_at)
  elseif what == 'refused-keys' then
    confirm_key(field, value)
  elseif recorded_at[what](value, field) < opened_at then
    if what == 'denied-names' then settle_adopted_name(index, field, value) else redis.call('HDEL', keys[what], field) end
  end
end
return found[1]
