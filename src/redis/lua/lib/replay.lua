-- The changes that wait to be replayed to the legacy service: a stream (src/redis/README.md has its fields). Scripts that
-- take entries off work also where Redis is full, since that frees memory.

-- The fields of an entry by name; nil if it is not in the queue.
local function queued_entry(id)
  local found = redis.call('XRANGE', replay_key(), id, id)[1]
  return found and by_name(found[2])
end

-- Adds an entry for a caller {key, role, user, sealed}; returns its id.
local function add_entry(caller, kind, change)
  return redis.call('XADD', replay_key(), '*', 'key', caller.key, 'role', caller.role, 'user', caller.user, 'sealed',
    caller.sealed, 'kind', kind, 'change', change, 'retry', '')
end

-- Adds an entry that sends the state at that time, whatever its change was; returns its id. It keeps when the change was
-- accepted, which is how old its `sealed` can be.
local function add_retry(fields, accepted)
  return redis.call('XADD', replay_key(), '*', 'key', fields.key, 'role', fields.role, 'user', fields.user, 'sealed',
    fields.sealed, 'kind', fields.kind, 'change', fields.change, 'retry', '1', 'accepted', fields.accepted or accepted)
end

-- Removes an entry, and releases what was kept for it: its list, and its file if the profile has another one by now.
local function remove_entry(id, fields)
  redis.call('XDEL', replay_key(), id)
  redis.call('HDEL', replay_senders_key(), id, id .. ' retried')
  local change = cjson.decode(fields.change)
  if change.list then redis.call('UNLINK', replay_list_key(change.list)) end
  local file = change.picture and change.picture[1] == 'file' and change.picture[2]
  if file and redis.call('SREM', replay_files_key(), file) == 1
    and redis.call('HGET', profile_key(fields.user), 'pf') ~= file then
    redis.call('ZADD', unreferenced_pictures_key(), now_ms(), file)
  end
end
