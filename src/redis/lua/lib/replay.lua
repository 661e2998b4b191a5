-- The changes that wait to be replayed to the legacy service: a stream (src/redis/README.md has its fields). Scripts that
-- take entries off work also where Redis is full, since that frees memory.

-- The fields of an entry by name; nil if it is not in the queue.
local function queued_entry(id)
  local found = redis.call('XRANGE', replay_key(), id, id)[1]
  return found and by_name(found[2])
end

-- The list of organizations in which changes wait for their replay is in another slot. A change is queued only under
-- the present listing of its organization, whose number must be on that list before. A listing ends in the script
-- that sees the queue empty (cutover/replay/listing/close.lua), and only then is its number taken off the list. So
-- no organization waits without being on the list, whatever is killed or delayed in between.
local function listing_now() return redis.call('GET', replay_listing_key()) or '0' end
local function unlisted() return redis.error_reply('UNLISTED ' .. listing_now()) end

-- Adds an entry for a caller {key, role, user, sealed}; returns its id.
local function add_entry(caller, kind, change, retry)
  return redis.call('XADD', replay_key(), '*', 'key', caller.key, 'role', caller.role, 'user', caller.user, 'sealed',
    caller.sealed, 'kind', kind, 'change', change, 'retry', retry)
end

-- Adds an entry that sends the state at that time, whatever its change was; returns its id.
local function add_retry(fields) return add_entry(fields, fields.kind, fields.change, '1') end

-- Removes an entry, and releases what was kept for it: its list, and its file if the profile has another one by now.
local function remove_entry(id, fields)
  redis.call('XDEL', replay_key(), id)
  redis.call('HDEL', replay_senders_key(), id)
  local change = cjson.decode(fields.change)
  if change.list then redis.call('UNLINK', replay_list_key(change.list)) end
  local file = change.picture and change.picture[1] == 'file' and change.picture[2]
  if file and redis.call('SREM', replay_files_key(), file) == 1
    and redis.call('HGET', profile_key(fields.user), 'pf') ~= file then
    redis.call('ZADD', unreferenced_pictures_key(), now_ms(), file)
  end
end
