#!lua
-- @wait replicas
-- @include names
-- Adds some users' names to the next generation of the name index.
--
-- ARGV[4…]                  two for each name: user, name normalized by the new comparison
-- {'lapsed'}                this rebuild was held up for longer than its lease: names may have changed
-- {'added', collisions}     {position (from 0), holder} for each name that another user holds already
local token, lease_ms, generation = unpack(ARGV, 1, 3)
if not renew_rebuild(token, lease_ms) then return { 'lapsed' } end
local collisions = {}
for i = 4, #ARGV, 2 do
  local user, normalized_name = ARGV[i], ARGV[i + 1]
  if not claim(generation, normalized_name, user) then
    local holder = holder_of(generation, normalized_name)
    if holder ~= user then collisions[#collisions + 1] = { (i - 4) / 2, holder } end
  end
end
return { 'added', collisions }
