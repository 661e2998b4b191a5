#!lua
-- @wait replicas
-- @include names
-- Adds some users' names to the next generation of the name index.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms
-- ARGV[3]  the next generation
-- ARGV[4…] two for each name: user, form under the wanted comparison
--
-- {'lapsed'}                this rebuild was held up for longer than its lease: names may have changed
-- {'added', collisions}     {position (from 0), holder} for each name that another user holds already
if not renew_rebuild(ARGV[1], ARGV[2]) then return { 'lapsed' } end
local collisions = {}
for i = 4, #ARGV, 2 do
  local user, form = ARGV[i], ARGV[i + 1]
  if not claim(ARGV[3], form, user) then
    local holder = holder_of(ARGV[3], form)
    if holder ~= user then collisions[#collisions + 1] = { (i - 4) / 2, holder } end
  end
end
return { 'added', collisions }
