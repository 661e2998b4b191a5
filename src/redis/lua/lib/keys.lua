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
local function lost_names_key() return KEYS[1] .. 'cutover:lost-names' end
local function denylist_change_key() return KEYS[1] .. 'cutover:denylist-change' end
local function gaps_key() return KEYS[1] .. 'cutover:gaps' end
