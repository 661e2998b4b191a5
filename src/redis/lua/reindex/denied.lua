#!lua
-- @wait replicas
-- @include names
-- Adds some denied names to the next generation of the denylist. Of spellings that become the same name, the first one
-- stays.
--
-- ARGV[5…]                  two for each name: name, name normalized by the new comparison
-- {'lapsed'}                this rebuild cannot go on (lib/names.lua): names may have changed
-- {'added', count}          how many are new to the list
local token, step, lease_ms, generation = unpack(ARGV, 1, 4)
if not step_rebuild(token, step, lease_ms) then return { 'lapsed' } end
local count = 0
for i = 5, #ARGV, 2 do
  local name, normalized_name = ARGV[i], ARGV[i + 1]
  local given = normalized_name == name and '' or name
  count = count + redis.call('HSETNX', denylist_key(generation), normalized_name, given)
end
return { 'added', count }
