-- What most scripts need: the store's clock, how an organization's keys are spelled, how a caller and a profile are
-- read, and the audit trail.

-- The store's clock, in milliseconds: one clock for all instances. As text, as Redis stores it.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6, -4)
end

-- The values of a reply that has names and values in turn, by name.
local function by_name(reply)
  local values = {}
  for i = 1, #reply, 2 do values[reply[i]] = reply[i + 1] end
  return values
end

-- Whether a key has a type, or does not exist.
local function is_type(key, wanted)
  local found = redis.call('TYPE', key).ok
  return found == wanted or found == 'none'
end

-- The keys of one organization, spelled as in keys.ts. KEYS[1] is what they all begin with: <prefix>{organization}:
local function settings_key() return KEYS[1] .. 'settings' end
local function profile_key(user) return KEYS[1] .. 'p:' .. user end
local function names_key(index, bucket) return KEYS[1] .. 'n' .. index .. ':' .. bucket end
local function denylist_key(index) return KEYS[1] .. 'd' .. index end
local function stage_key() return KEYS[1] .. 'stage' end
local function stage_owner_key() return KEYS[1] .. 'stage-owner' end
local function replaced_denylist_key() return KEYS[1] .. 'stage-old' end
local function rebuild_key() return KEYS[1] .. 'reindex' end
local function local_writes_key() return KEYS[1] .. 'local-writes' end
local function denylist_writes_key() return KEYS[1] .. 'denylist-writes' end
local function claims_key() return KEYS[1] .. 'claims' end
local function loading_key() return KEYS[1] .. 'loading' end
local function pending_renames_key() return KEYS[1] .. 'renames' end
local function api_key_key(sha256) return KEYS[1] .. 'key:' .. sha256 end
local function api_key_ids_key() return KEYS[1] .. 'keys' end
local function objects_key() return KEYS[1] .. 'objects' end
local function collection_key(user) return KEYS[1] .. 'c:' .. user end
local function unreferenced_pictures_key() return KEYS[1] .. 'media' end
local function audit_key() return KEYS[1] .. 'audit' end
local function usage_day_key(day) return KEYS[1] .. 'use:' .. day end
local function used_keys_key() return KEYS[1] .. 'use:keys' end
local function used_key_key(key_id) return KEYS[1] .. 'use:key:' .. key_id end
local function usage_flush_key(instance) return KEYS[1] .. 'use:flush:' .. instance end
local function comparisons_key() return KEYS[1] .. 'cutover:comparisons' end
local function differing_users_key() return KEYS[1] .. 'cutover:differing' end
local function unmapped_keys_key() return KEYS[1] .. 'cutover:unmapped-keys' end
local function refused_keys_key() return KEYS[1] .. 'cutover:refused-keys' end
local function adoptions_key() return KEYS[1] .. 'cutover:adoptions' end
local function unsettled_key() return KEYS[1] .. 'cutover:unsettled' end
local function failed_adoptions_key() return KEYS[1] .. 'cutover:failed-adoptions' end
local function lost_names_key() return KEYS[1] .. 'cutover:lost-names' end
local function denylist_change_key() return KEYS[1] .. 'cutover:denylist-change' end
local function gaps_key() return KEYS[1] .. 'cutover:gaps' end
local function replay_key() return KEYS[1] .. 'cutover:replay' end
local function replay_senders_key() return KEYS[1] .. 'cutover:replay-senders' end
local function replay_aside_key() return KEYS[1] .. 'cutover:replay-aside' end
local function replay_list_key(list) return KEYS[1] .. 'cutover:replay-list:' .. list end
local function replay_files_key() return KEYS[1] .. 'cutover:replay-files' end
local function replay_refusals_key() return KEYS[1] .. 'cutover:replay-refusals' end

-- A number that a script can have written; nil for any other text.
local function whole_number(text)
  return #text < 10 and (text == '0' or string.find(text, '^[1-9]%d*$')) and tonumber(text) or nil
end

-- The epoch that the last switch has raised here (lib/change.lua).
local function epoch_in_force() return redis.call('HGET', settings_key(), 'epoch') or '0' end

-- Refuses what an apply sends after a later one of its run has claimed the run (src/migration/runs/lock.ts).
local function taken_over() return redis.error_reply('TAKENOVER another apply has claimed the run') end

-- The caller that an API key identifies (domain/caller.ts); nil if the key is unknown, revoked or expired, which
-- callers must not be able to tell apart. An expiry that is no time has passed: tonumber reads even 'inf' and 'nan'.
local function find_caller(sha256)
  local key = redis.call('HMGET', api_key_key(sha256), 'i', 'r', 'u', 'c', 'x', 'e')
  if not key[1] or key[5] then return nil end
  local expiry = key[6] and (#key[6] <= 15 and string.match(key[6], '^%d+$') or '0')
  if expiry and tonumber(expiry) <= tonumber(now_ms()) then return nil end
  local role = key[2] == 'admin' and 'admin' or 'player'
  return { keyId = key[1], role = role, userId = key[3] or nil, client = key[4] or nil }
end

-- The URL of a reference: the catalogue's, else the one kept with it, else by the organization's template; or nil.
local function url_of(reference, kept)
  local url = redis.call('HGET', objects_key(), reference) or kept
  if url then return url end
  local template = redis.call('HGET', settings_key(), 'template')
  if not template then return nil end
  -- As JavaScript's encodeURIComponent does; the line feed separates the two ids.
  local encoded = string.gsub(reference, "[^%w%-_.!~*'()\n]", function(byte)
    return string.format('%%%02X', string.byte(byte))
  end)
  local datasource, object = string.match(encoded, '^([^\n]*)\n([^\n]*)$')
  -- fsck reports a reference that is not two ids; who reads the profile must not fail for it.
  if not datasource then return nil end
  -- As a segment of a path, dots lead to another folder, percent-encoded or not.
  if string.find(datasource, '^%.%.?$') or string.find(object, '^%.%.?$') then return nil end
  return (string.gsub(template, '{(%a+)}', { datasourceId = datasource, objectDefinitionId = object }))
end

-- A user's profile (domain/profile.ts), or nil if there is none. An unverified wallet (wu) is never shown.
local function read_profile(user)
  local p = redis.call('HMGET', profile_key(user), 'u', 'pf', 'pr', 'pu', 'ar', 'au', 'w', 't')
  if not p[8] then return nil end
  local picture_url
  if not p[2] then picture_url = p[3] and url_of(p[3], p[4]) or p[4] or nil end
  return {
    username = p[1] or nil,
    pictureFile = p[2] or nil,
    pictureUrl = picture_url,
    avatar = p[5] or nil,
    avatarUrl = p[5] and url_of(p[5], p[6]) or nil,
    wallet = p[7] or nil,
  }
end

-- One entry of the organization's audit trail; its id is its time. Field-value pairs follow the operation.
local function add_audit_entry(operation, key_id, ...)
  redis.call('XADD', audit_key(), 'MAXLEN', '~', '100000', '*', 'op', operation, 'key', key_id, ...)
end
