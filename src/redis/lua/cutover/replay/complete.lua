#!lua
-- @include replay
-- Removes entries that the legacy service has.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  where the legacy service shows the file that they uploaded, '' where that is not known
-- ARGV[2…] their ids
--
-- how many of them were in the queue
local removed = 0
for i = 2, #ARGV do
  local fields = queued_entry(ARGV[i])
  if fields then
    removed = removed + 1
    local picture = remove_entry(ARGV[i], fields).picture
    local profile = profile_key(fields.user)
    if ARGV[1] ~= '' and picture and picture[1] == 'file' and redis.call('HGET', profile, 'pf') == picture[2] then
      redis.call('HSET', profile, 'po', ARGV[1])
    end
  end
end
return removed
