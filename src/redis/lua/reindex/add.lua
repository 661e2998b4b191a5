#!lua
-- @wait replicas
-- @include names
-- Adds a part to the next generation, and renews the lease of the rebuild. It goes on only from the step before: else it
-- has lost the lease, so that names may have changed, or a failover has lost what it wrote last.
--
-- ARGV[6…]  two for each: what there is of a name, and the name normalized by the new comparison:
--             names    user
--             denied   name as given; of spellings that become the same name, the first one stays
--             marks    epoch of a mark of a name denied or removed here (lib/local_writes.lua); a later one stays
--             adopted  time of a mark of a name whose change was adopted (lib/adoptions.lua); a later one stays
--           Without a name, a mark is one of the whole denylist.
--
-- {'lapsed'}             this rebuild cannot go on: nothing was done
-- {'added', others}      {position (from 0), what there was already} for each that was not added
local token, step, lease_ms, generation, kind = unpack(ARGV, 1, 5)
if redis.call('GET', rebuild_key()) ~= token .. ' ' .. step then return { 'lapsed' } end
redis.call('SET', rebuild_key(), token .. ' ' .. step + 1, 'PX', lease_ms)

local function set_later(key, field, value)
  local known = redis.call('HGET', key, field)
  if known and tonumber(known) >= tonumber(value) then return known end
  redis.call('HSET', key, field, value)
end

local add = {
  names = function(user, normalized_name)
    return not claim(generation, normalized_name, user) and holder_of(generation, normalized_name)
  end,
  denied = function(name, normalized_name)
    local spelling = spelling_of(name, normalized_name)
    return redis.call('HSETNX', denylist_key(generation), normalized_name, spelling) == 0 and name
  end,
  marks = function(epoch, normalized_name) return set_later(denylist_writes_key(), normalized_name, epoch) end,
  adopted = function(at, normalized_name)
    local field = normalized_name == '' and 'denylist-at' or 'name:' .. normalized_name
    return set_later(adoptions_key(), field, at)
  end,
}
local others = {}
for i = 6, #ARGV, 2 do
  local other = add[kind](ARGV[i], ARGV[i + 1])
  if other then others[#others + 1] = { (i - 6) / 2, other } end
end
return { 'added', others }
