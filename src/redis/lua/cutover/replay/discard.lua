#!lua
-- @include replay
-- Removes the oldest entries of the queue unsent.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  how many at most
--
-- their kinds
local kinds = {}
for _, entry in ipairs(redis.call('XRANGE', replay_key(), '-', '+', 'COUNT', ARGV[1])) do
  local fields = queued_entry(entry[1])
  remove_entry(entry[1], fields)
  kinds[#kinds + 1] = fields.kind
end
return kinds
