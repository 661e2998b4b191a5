-- @include names
-- Adoption: making Redis agree with the legacy service about a user. An adoption draws a number before it reads from
-- the legacy service, and only a number higher than the last one applied to the user is applied. A denylist change
-- moves the barrier when it begins and when it has been applied: what was read across it has to be read again.
local function draw_number() return redis.call('HINCRBY', adoptions_key(), 'drawn', 1) end
local function move_barrier() redis.call('HSET', adoptions_key(), 'barrier', draw_number()) end
local function barrier() return tonumber(redis.call('HGET', adoptions_key(), 'barrier') or 0) end

-- Records that a change of a denied name was adopted; without a name, of the whole denylist.
local function mark_adopted_name(normalized_name)
  local field = normalized_name and 'name:' .. normalized_name or 'denylist-at'
  redis.call('HSET', adoptions_key(), field, now_ms())
end

-- Removes the mark of a denied name, by its field, that a clean verify has settled. A source that is older than the mark
-- must still not undo the ban: all denied names count as adopted at that time. The mark of a name that was removed stays,
-- for only that tells it from one that the source has denied since.
local function settle_adopted_name(index, field, adopted_at)
  if not is_denied(index, string.sub(field, 6)) then return end
  local bans_at = redis.call('HGET', adoptions_key(), 'bans-at')
  if not bans_at or tonumber(bans_at) < tonumber(adopted_at) then
    redis.call('HSET', adoptions_key(), 'bans-at', adopted_at)
  end
  redis.call('HDEL', adoptions_key(), field)
end

-- Whether a change of a name, denied or not, or of the whole denylist, was adopted after a snapshot was opened (ms).
local function is_name_adopted_since(normalized_name, has_ban, snapshot_at)
  for _, field in ipairs({ 'denylist-at', 'name:' .. normalized_name, has_ban and 'bans-at' or nil }) do
    local adopted_at = redis.call('HGET', adoptions_key(), field)
    if adopted_at and tonumber(adopted_at) >= snapshot_at then return true end
  end
  return false
end

-- Changes that were forwarded and not adopted yet, by user; '' is the denylist. Each is `change:due:at` or
-- `change:due:at:drawn`, separated by blanks: the number of the change, when its outcome must be visible, so that any
-- adoption settles it, when it was forwarded (ms), and the number of its adoption.
local most_marks = 100
local function mark_unsettled(user, number, ms_until)
  local marks = {}
  for mark in string.gmatch(redis.call('HGET', unsettled_key(), user) or '', '%S+') do marks[#marks + 1] = mark end
  if #marks >= most_marks then
    -- The two oldest become one, of the change 0: an adoption settles it once both were due.
    local one, other = {}, {}
    for number in string.gmatch(table.remove(marks, 1), '%d+') do one[#one + 1] = tonumber(number) end
    for number in string.gmatch(marks[1], '%d+') do other[#other + 1] = tonumber(number) end
    marks[1] = string.format('0:%.0f:%.0f:%.0f',
      math.max(one[2], other[2]), one[3], math.max(one[4] or 0, other[4] or 0))
  end
  marks[#marks + 1] = number .. ':' .. (now_ms() + ms_until) .. ':' .. now_ms()
  redis.call('HSET', unsettled_key(), user, table.concat(marks, ' '))
end

-- The latest time (ms) at which a mark was due that was settled without the adoption of its change, of whatever user.
local function settled_due() return tonumber(redis.call('HGET', adoptions_key(), 'settled-due') or 0) end

-- Whether a change of the user that was not adopted may have become visible after a time (ms).
local function is_unsettled_after(user, time)
  if settled_due() > time then return true end
  for due in string.gmatch(redis.call('HGET', unsettled_key(), user) or '', '%d+:(%d+)%S*') do
    if tonumber(due) > time then return true end
  end
  return false
end

-- Removes the mark of this number, and those that were due at the time given.
local function settle(user, settled, due)
  local marks = redis.call('HGET', unsettled_key(), user)
  if not marks then return end
  local rest, latest = {}, 0
  for mark, number, at in string.gmatch(marks, '((%d+):(%d+)%S*)') do
    if number ~= settled then
      if tonumber(at) > due then rest[#rest + 1] = mark else latest = math.max(latest, tonumber(at)) end
    end
  end
  if latest > settled_due() then redis.call('HSET', adoptions_key(), 'settled-due', latest) end
  if #rest == 0 then
    redis.call('HDEL', unsettled_key(), user)
  else
    redis.call('HSET', unsettled_key(), user, table.concat(rest, ' '))
  end
end

-- Whether a copy that was fetched at this time (ms) may be older than an upload that was forwarded unmarked.
local function is_outdated_copy(fetched_at)
  return (tonumber(fetched_at) or 0) < tonumber(redis.call('HGET', adoptions_key(), 'unmarked-upload') or 0)
end

-- Makes a profile show the picture at the legacy service again instead of its copy here: there may be another one at
-- the same URL by now.
local function drop_copy(user)
  local profile = profile_key(user)
  local copy = redis.call('HMGET', profile, 'pf', 'po')
  if not copy[1] or not copy[2] then return end
  redis.call('ZADD', unreferenced_pictures_key(), now_ms(), copy[1])
  redis.call('HDEL', profile, 'pf', 'po', 'pt')
  redis.call('HSET', profile, 'pu', copy[2])
end

-- Takes a name away from the user who has it here; this is recorded until an adoption or a migration repairs it.
local function take_name(index, normalized_name, from, by)
  release(index, normalized_name)
  redis.call('HDEL', profile_key(from), 'u', 'b')
  redis.call('HSET', profile_key(from), 't', '')
  redis.call('HSET', lost_names_key(), from, now_ms() .. '\n' .. normalized_name .. '\n' .. by)
end
