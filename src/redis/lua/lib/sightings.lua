-- @include names
-- What fsck has seen, and whether it is still so. ARGV[1] is JSON:
--
--   generation   of the name index that must be in force; absent if it does not matter
--   expect       [[reply, command, argument…]…]: what these commands must still reply, false for nothing. One is not
--                Redis' own: 'holder', normalized name, who the index says has it
local sighting = cjson.decode(ARGV[1])

local function reply_of(command)
  if command[1] == 'holder' then command = { 'hget', (bucket(sighting.generation, command[2])), command[2] } end
  local reply = redis.pcall(unpack(command))
  -- TYPE replies a status; a key of another type than expected holds nothing.
  if type(reply) == 'table' then reply = reply.ok or false end
  return reply
end

-- 'stale' where another generation is in force by now, 'changed' where something else is not so any more, else nil.
local function what_changed()
  if sighting.generation and check_generation(sighting.generation) == 'stale' then return 'stale' end
  for _, expected in ipairs(sighting.expect) do
    if reply_of({ unpack(expected, 2) }) ~= expected[1] then return 'changed' end
  end
end
