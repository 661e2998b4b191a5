-- @include adoptions local_writes change claim
-- Every script that takes rows of the source has this, and gets after the claim:
--
--   rows         JSON, an array for each row
--   snapshot_at  when the source's snapshot was opened, ms; '' if unknown. What was adopted from the legacy service
--                later, or at all where this is unknown, is newer than the source says and stays
--   marks_from   the epoch below which marks of what was written here do not count (lib/local_writes.lua)
local rows, snapshot_at, marks_from = cjson.decode(ARGV[2]), tonumber(ARGV[3]) or 0, tonumber(ARGV[4])

-- Whether a mark, of a profile, says that it was written here under the current authority.
local function is_ours(mark) return mark and (tonumber(mark) or 0) >= marks_from end

local function is_adopted_since(adopted_at) return adopted_at and (tonumber(adopted_at) or 0) >= snapshot_at end

-- Whether a profile with this mark, adopted then if at all, is not the source's to change.
local function is_kept(mark, adopted_at) return is_ours(mark) or is_adopted_since(adopted_at) end

-- Whether a name, denied or not, is no longer the source's to deny or to remove.
local is_whole_list_ours = is_denylist_write('', marks_from)
local function is_name_ours(normalized_name, has_ban)
  return is_whole_list_ours
    or is_denylist_write(normalized_name, marks_from)
    or is_name_adopted_since(normalized_name, has_ban, snapshot_at)
end
