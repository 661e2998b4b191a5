-- @include names replay
-- Every script that makes a change for a client, a migration or an adoption begins with this. It refuses the change of
-- an instance that a switch of authority has left behind: its epoch is lower than the one that the switch raised in the
-- settings. So nothing old can land later: no change of a paused instance, no command still in a socket.
--
-- ARGV begins with these two, which are taken off it, so that every script counts its own from 1:
--
--   epoch     in the mode reverse followed by a space and JSON {key, role, user, sealed, most}: what the change is queued
--             with for the legacy service, and how many entries may wait there; if so many do, it is refused, too
--   index     the generation of the name index that the script's normalized names belong to, '' if it has none
local epoch, index = table.remove(ARGV, 1), table.remove(ARGV, 1)
-- Set if the change is to be queued, by the script that makes it, so that none can be accepted without being queued.
local queued
local settings
do
  if not tonumber(epoch) then epoch, queued = string.match(epoch, '^(%d+) (.*)$') end
  epoch = tonumber(epoch)
  local found = redis.call('HMGET', settings_key(), 'epoch', 'index', 'n' .. index, 'ownership')
  local current = tonumber(found[1] or '0')
  if epoch < current then
    return redis.error_reply('OUTDATED the change was admitted under epoch ' .. epoch .. ', now it is ' .. current)
  end
  settings = { index = found[2] or '0', needs_ownership = found[4] == '1' }
  counts[index] = found[3]
  if queued then
    queued = cjson.decode(queued)
    local waiting = redis.call('XLEN', replay_key())
    if waiting >= queued.most then return redis.error_reply('BACKLOGFULL ' .. waiting .. ' changes wait for their replay') end
  end
end

-- 'frozen' where names must not be checked or written now: the index is being rebuilt, or was meanwhile, and the
-- normalized names are of another comparison. A script that replies it has done nothing.
local function names_refused()
  return (index ~= settings.index or redis.call('EXISTS', rebuild_key()) == 1) and 'frozen'
end

local function enqueue(kind, change) add_entry(queued, kind, cjson.encode(change)) end

-- Whether a picture file, which its profile has given up, is kept until it has been replayed.
local function awaits_replay(file)
  return queued ~= nil and redis.call('SISMEMBER', replay_files_key(), file) == 1
end
