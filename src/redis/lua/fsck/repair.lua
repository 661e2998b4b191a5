#!lua
-- @wait replicas
-- @include audit names
-- Makes a repair, unless what it is based on has changed since fsck saw it: an optimistic transaction, as WATCH and
-- MULTI make one, but on a connection that others share.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that must be in force, '' where it does not matter
-- ARGV[2]  JSON [[reply, command, argument…]…]: what these commands must still reply, false for nothing
-- ARGV[3]  JSON [[command, argument…]…]: the repair
-- ARGV[4]  JSON [field, value…]: what the audit trail keeps of it, [] for no entry
--
-- 'stale', 'frozen', 'changed'      nothing was done
-- 'repaired'
local refused = ARGV[1] ~= '' and check_generation(ARGV[1])
if refused then return refused end
for _, expected in ipairs(cjson.decode(ARGV[2])) do
  local reply = redis.pcall(unpack(expected, 2))
  -- TYPE replies a status; a key of another type than expected holds nothing.
  if type(reply) == 'table' then reply = reply.ok or false end
  if reply ~= expected[1] then return 'changed' end
end
for _, command in ipairs(cjson.decode(ARGV[3])) do redis.call(unpack(command)) end
local entry = cjson.decode(ARGV[4])
if #entry > 0 then audit('repair', 'operator', unpack(entry)) end
return 'repaired'
