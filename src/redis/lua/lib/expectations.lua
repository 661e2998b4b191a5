-- @include names
-- What fsck has seen, as JSON:
--
--   generation   of the name index that must be in force; absent if it does not matter
--   expect       [[reply, command, argument…]…]: what these commands must still reply, false for nothing. Besides those
--                of Redis there is 'holder', form: who the index says has it
local function reply_of(command)
  if command[1] == 'holder' then command = { 'hget', (bucket(seen.generation, command[2])), command[2] } end
  local reply = redis.pcall(unpack(command))
  -- TYPE replies a status; a key of another type than expected holds nothing.
  if type(reply) == 'table' then reply = reply.ok or false end
  return reply
end
