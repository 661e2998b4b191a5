#!lua
-- Records what an instance found when it compared the legacy service's responses with what is stored here, and which
-- API keys the two judge differently. Comparisons are counted and listed by mode: those of an earlier one are ignored.
--
-- ARGV[2]  JSON {counts, users, failed, keys, gaps}
--            counts  name -> how many more
--            users   user -> the fields that differ by the last comparison; none if they match
--            failed  user -> {number, reason}: a change that could not be adopted
--            keys    SHA-256 of an API key -> {finding, entry}
--                      finding: unmapped | refused | agreed: accepted by the legacy service only, by Redis only, by both;
--                        agreed-for-nobody: by both for a request that needs no user, and it has none here
--                      entry: {userAgent, isForUser, status}
--            gaps    name -> {count, first, pending}: what may be missing here, and for how many ms it may still take
--                    effect in the legacy service
--
-- Findings are dated by the store's clock when they are recorded, so never too early: a clean verify removes those from
-- before its snapshot (clear_verified.lua).
local most_users, most_keys = 100000, 1000
local hours_kept = 48
local mode_since = tonumber(ARGV[1]) -- of the mode that the findings are of
local found = cjson.decode(ARGV[2])
local now = tonumber(now_ms())

local function set_bounded(key, field, value, most)
  if redis.call('HLEN', key) < most or redis.call('HEXISTS', key, field) == 1 then
    redis.call('HSET', key, field, value)
  end
end

-- Whether a key is on record since it would be refused here for the profile of its user.
local function is_unmapped_for_user(sha256)
  local entry = redis.call('HGET', unmapped_keys_key(), sha256)
  return entry and cjson.decode(entry).isForUser
end

local disputed = { unmapped = unmapped_keys_key(), refused = refused_keys_key() }
for sha256, key in pairs(found.keys) do
  if key.finding ~= 'refused' then redis.call('HDEL', refused_keys_key(), sha256) end
  if disputed[key.finding] then
    key.entry.at = now
    set_bounded(disputed[key.finding], sha256, cjson.encode(key.entry), most_keys)
  elseif key.finding == 'agreed' or not is_unmapped_for_user(sha256) then
    redis.call('HDEL', unmapped_keys_key(), sha256)
  end
end

for user, failure in pairs(found.failed) do
  -- Not if a later adoption has repaired it.
  local adopted = tonumber(redis.call('HGET', profile_key(user), 'as')) or 0
  if adopted < failure.number then
    set_bounded(failed_adoptions_key(), user, cjson.encode({ reason = failure.reason, at = now }), most_users)
  end
end

for name, gap in pairs(found.gaps) do
  local first, last = math.min(gap.first, now), now + gap.pending
  local known = redis.call('HGET', gaps_key(), name)
  if known then
    known = cjson.decode(known)
    gap.count, first, last = gap.count + known.count, known.first, math.max(last, known.last)
  end
  redis.call('HSET', gaps_key(), name, cjson.encode({ count = gap.count, first = first, last = last }))
  -- This outlasts the gap: a copy from before may be older, although its URL is the same.
  if name == 'unmarked-upload' then redis.call('HSET', adoptions_key(), name, last) end
end

local since = tonumber(redis.call('HGET', comparisons_key(), 'since') or 0)
if mode_since < since then return end
if mode_since > since then
  redis.call('UNLINK', comparisons_key(), differing_users_key())
  redis.call('HSET', comparisons_key(), 'since', ARGV[1])
end
for name, count in pairs(found.counts) do redis.call('HINCRBY', comparisons_key(), name, count) end
local hour = math.floor(now / 3600000)
for _, kind in ipairs({ 'same', 'different' }) do
  local count = found.counts[kind]
  if count and redis.call('HINCRBY', comparisons_key(), 'hour:' .. hour .. ':' .. kind, count) == count then
    -- With the first count of an hour, those of hours that are no longer shown are removed.
    for _, name in ipairs(redis.call('HKEYS', comparisons_key())) do
      local of = tonumber(string.match(name, '^hour:(%d+):'))
      if of and of <= hour - hours_kept then redis.call('HDEL', comparisons_key(), name) end
    end
  end
end
for user, fields in pairs(found.users) do
  if #fields == 0 then
    redis.call('HDEL', differing_users_key(), user)
    redis.call('HDEL', failed_adoptions_key(), user)
  else
    set_bounded(differing_users_key(), user, cjson.encode({ fields = fields, at = now }), most_users)
  end
end
