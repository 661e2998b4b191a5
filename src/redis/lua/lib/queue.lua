-- @include replay settings
-- In the mode reverse, the script that makes a change queues it for the legacy service in the same call, so that
-- nothing can be accepted without being queued. Whether it does is up to the instance: each epoch belongs to one mode.
--
-- ARGV has, after the arguments of lib/settings.lua: '' where nothing is queued, else the listing of the organization
-- (lib/replay.lua), a space, and JSON {key, role, user, sealed, most}: the caller's fields of the entry, and how many
-- entries may wait. Beyond that, or under another listing, nothing is changed.
local queued = table.remove(ARGV, 1)
if queued == '' then
  queued = nil
else
  local listing, fields = string.match(queued, '^(%d*) (.*)$')
  if listing ~= listing_now() then return unlisted() end
  queued = cjson.decode(fields)
  local waiting = redis.call('XLEN', replay_key())
  if waiting >= queued.most then return redis.error_reply('BACKLOGFULL ' .. waiting .. ' changes wait for their replay') end
end

local function enqueue(kind, change)
  redis.call('XADD', replay_key(), '*', 'key', queued.key, 'role', queued.role, 'user', queued.user, 'sealed',
    queued.sealed, 'kind', kind, 'change', cjson.encode(change), 'retry', '')
end

-- Whether a picture file, which its profile has given up, is kept until it has been replayed.
local function awaits_replay(file)
  return queued ~= nil and redis.call('SISMEMBER', replay_files_key(), file) == 1
end
