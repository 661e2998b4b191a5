-- @include names
-- What fsck has seen: a script that includes this replies 'changed' if that no longer holds. ARGV[1] is JSON:
--
--   generation   of the name index that must be in force; absent if it does not matter
--   expect       [[reply, command, argument…]…]: what these commands must still reply, false for nothing. One is not
--                Redis' own: 'holder', normalized name, who the index says has it
local sighting = cjson.decode(ARGV[1])
local generation = sighting.generation
if generation and generation ~= (redis.call('HGET', settings_key(), 'index') or '0') then return 'changed' end
for _, expected in ipairs(sighting.expect) do
  local command = { unpack(expected, 2) }
  if command[1] == 'holder' then command = { 'hget', (bucket(generation, command[2])), command[2] } end
  local reply = redis.pcall(unpack(command))
  -- TYPE replies a status; a key of another type than expected holds nothing.
  if type(reply) == 'table' then reply = reply.ok or false end
  if reply ~= expected[1] then return 'changed' end
end
