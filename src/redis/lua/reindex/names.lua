#!lua
-- @include freeze names
-- Another comparison, for a part of the users: puts their names into the next generation of the index.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms
-- ARGV[3]  the next generation
-- ARGV[4…] two for each name: user, form under the wanted comparison
--
-- {'lapsed'}                        names are no longer frozen by this tool
-- {'added', count, collisions}      how many are new to the index; {position (from 0), holder} for each name
--                                   that another user holds already
if not freeze(ARGV[1], ARGV[2]) then return { 'lapsed' } end
local count, collisions = 0, {}
for i = 4, #ARGV, 2 do
  local user, form = ARGV[i], ARGV[i + 1]
  if claim(ARGV[3], form, user) then
    count = count + 1
  else
    local holder = holder_of(ARGV[3], form)
    if holder ~= user then collisions[#collisions + 1] = { (i - 4) / 2, holder } end
  end
end
return { 'added', count, collisions }
