#!lua
-- @include adoptions local_writes change claim
-- Writes denied names. A name that is in use stays with its user (contract 4.4 allows that state). If the list was
-- overwritten here, or the name was denied or removed here, that stays.
--
-- {'stale'} {'frozen'}              nothing was done: look again, and retry
-- {'applied', outcomes, used}       outcomes: a word for each name: created, updated (in its spelling), unchanged,
--                                   kept (changed here); used: positions (from 0) of names in use

-- JSON, an array for each name: name, normalized name.
local rows = cjson.decode(ARGV[2])
-- When the source's snapshot was opened, ms; '' if unknown. Where a denylist change of the legacy service was adopted
-- later, or at all where this is unknown, the list is newer than the source says and stays.
local snapshot_at = ARGV[3]
-- The epoch below which marks of what was written here do not count (lib/local_writes.lua).
local marks_from = tonumber(ARGV[4])
local refused = names_refused()
if refused then return { refused } end
local list = denylist_key(index)
local is_all_ours = is_denylist_newer(snapshot_at) or is_denylist_write('', marks_from)
local outcomes, used = {}, {}
for position, row in ipairs(rows) do
  local name, normalized_name = row[1], row[2]
  local value = normalized_name == name and '' or name
  local have = redis.call('HGET', list, normalized_name)
  local outcome = have and 'updated' or 'created'
  if have == value then
    outcome = 'unchanged'
  elseif is_all_ours or is_denylist_write(normalized_name, marks_from) then
    outcome = 'kept'
  elseif not is_dry then
    redis.call('HSET', list, normalized_name, value)
  end
  if outcome ~= 'kept' and holder_of(index, normalized_name) then used[#used + 1] = position - 1 end
  outcomes[position] = outcome
end
return { 'applied', outcomes, used }
