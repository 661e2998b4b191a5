-- The state of the cut-over, in the one hash KEYS[1] (src/redis/README.md). While the field `token` is there, a switch
-- to the mode `to` is under way, in one of these phases:
--
--   stop    instances stop admitting changes, and acknowledge once none is under way
--   reads   reads move to the new mode; instances confirm
--   back    the switch is withdrawn after reads moved: reads move back; instances confirm
--
-- A switch works also where Redis is full: that may be why the operator goes back.
--
-- A switch that its tool does not renew in time is withdrawn by whoever comes next. An instance that has not been heard
-- from for `silent_after` no longer trusts what it knew of a switch under way (readLease in protocol.ts is shorter).
local silent_after = 4000

local now = tonumber(now_ms())

local function cutover_state()
  local f = redis.call('HMGET', KEYS[1], 'mode', 'epoch', 'since', 'by', 'to', 'phase', 'token', 'until', 'lost')
  return {
    mode = f[1] or '', epoch = tonumber(f[2] or '0'), since = f[3] or '', by = f[4] or '',
    to = f[5] or '', phase = f[6] or '', token = f[7], expires = tonumber(f[8] or '0'), lost = tonumber(f[9] or '0'),
  }
end

-- Calls `visit` with each instance's id, registration (JSON), time of its last heartbeat, and the epoch and the phase
-- that it has acknowledged.
local function each_instance(visit)
  local all = by_name(redis.call('HGETALL', KEYS[1]))
  for field, beat in pairs(all) do
    local id = string.match(field, '^beat:(.*)$')
    if id then
      local at, epoch, phase = string.match(beat, '^(%d+) (%d+) (%S+)$')
      visit(id, all['instance:' .. id] or '{}', tonumber(at), tonumber(epoch), phase)
    end
  end
end

-- The ids of the instances that have not acknowledged this phase.
local function unacknowledged(state)
  local missing = {}
  each_instance(function(id, _, at, epoch, phase)
    local is_done = epoch == math.max(state.epoch, state.lost) and phase == state.phase
    local is_silent = state.phase == 'back' and now - at > silent_after
    if not is_done and not is_silent then missing[#missing + 1] = id end
  end)
  table.sort(missing)
  return missing
end

local function end_switch() redis.call('HDEL', KEYS[1], 'to', 'phase', 'token', 'until') end

-- Withdraws the switch under way, as far as that can be done now; returns the state after it.
local function withdraw(state)
  if state.phase == 'reads' then
    redis.call('HSET', KEYS[1], 'phase', 'back')
  elseif state.phase == 'stop' or #unacknowledged(state) == 0 then
    end_switch()
  end
  return cutover_state()
end

-- The state, after withdrawing a switch that its tool has abandoned.
local function settled_state()
  local state = cutover_state()
  if state.token and (state.phase == 'back' or state.expires < now) then return withdraw(state) end
  return state
end

local function forget_instance(id) redis.call('HDEL', KEYS[1], 'instance:' .. id, 'beat:' .. id) end
