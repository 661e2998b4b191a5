#!lua
-- @wait replicas
-- @include names
-- Adds some users' names to the next generation of the name index.
--
-- ARGV[5…]                  two for each name: user, name normalized by the new comparison
-- {'lapsed'}                this rebuild cannot go on (lib/names.lua): names may have changed
-- {'added', collisions}     {position (from 0), holder} for each name that somebody holds already
local token, step, lease_ms, generation = unpack(ARGV, 1, 4)
if not step_rebuild(token, step, lease_ms) then return { 'lapsed' } end
local collisions = {}
for i = 5, #ARGV, 2 do
  local user, normalized_name = ARGV[i], ARGV[i + 1]
  if not claim(generation, normalized_name, user) then
    collisions[#collisions + 1] = { (i - 5) / 2, holder_of(generation, normalized_name) }
  end
end
return { 'added', collisions }
