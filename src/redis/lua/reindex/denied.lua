#!lua
-- @wait replicas
-- @include names
-- Adds some denied names to the next generation of the denylist. Of spellings that become the same name, the first one
-- stays.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms
-- ARGV[3]  the next generation
-- ARGV[4…] two for each name: name, form under the wanted comparison
--
-- {'lapsed'}                this rebuild was held up for longer than its lease: names may have changed
-- {'added', count}          how many are new to the list
if not renew_rebuild(ARGV[1], ARGV[2]) then return { 'lapsed' } end
local count = 0
for i = 4, #ARGV, 2 do
  local name, form = ARGV[i], ARGV[i + 1]
  count = count + redis.call('HSETNX', denylist_key(ARGV[3]), form, form == name and '' or name)
end
return { 'added', count }
