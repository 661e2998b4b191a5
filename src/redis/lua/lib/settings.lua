-- @include names
-- What a script that makes a client's change needs of the organization's settings, in one read. Refuses a change of an
-- instance that a switch of authority has left behind: its epoch is lower than the one that the switch raised in the
-- settings. So nothing from before can land later: no change of a paused instance, no command still in a socket.
--
-- ARGV begins with the epoch, and the generation of the name index that the script's forms belong to, '' where it has
-- none. The script's own arguments are counted without these two.
local epoch, index = tonumber(table.remove(ARGV, 1)), table.remove(ARGV, 1)
local settings
do
  local found = redis.call('HMGET', settings_key(), 'epoch', 'index', 'n' .. index, 'template', 'ownership')
  local current = tonumber(found[1] or '0')
  if epoch < current then
    return redis.error_reply('OUTDATED the change was admitted under epoch ' .. epoch .. ', now it is ' .. current)
  end
  settings = { index = found[2] or '0', template = found[4], needs_ownership = found[5] == '1' }
  counts[index] = found[3]
end

-- Why names must not be judged or written now, as check_generation says it.
local function names_refused() return refused_generation(index, settings.index) end
