#!lua
-- Adds one batch of counted calls to an organization's ledger, once, however often it is sent.
-- README.md of src/deprecation describes the keys.
--
-- ARGV[5]  JSON {days: {day: when it expires, seconds…},
--                keys: [[key id, client label or '', uses, agents]…]}
--            uses    [[operation, first ms, last ms, [[day, status class, calls]…]]…]
--            agents  [[user agent, last ms]…]
--
-- 'recorded'
-- 'already'   this batch has been recorded before

-- The number grows with each batch of the instance that counted. A key's use is kept for `kept_seconds`, with at most
-- `most_agents` user agents.
local instance, number, kept_seconds, most_agents = unpack(ARGV, 1, 4)
local done = usage_flush_key(instance)
local latest = redis.call('GET', done)
if latest and tonumber(latest) >= tonumber(number) then return 'already' end
-- For as long as the counts: the same batch may be sent again after an outage of any length.
redis.call('SET', done, number, 'EX', kept_seconds)

-- What another program has left would end the script halfway, and the batch would count as recorded: a key of another
-- type is removed, and a field that is not a number counts as absent.
local function remove_unless(key, wanted)
  if not is_type(key, wanted) then redis.call('UNLINK', key) end
end

-- The oldest agent makes room.
local function remember(own, agent, at)
  local field = 'a:' .. agent
  local known = tonumber(redis.call('HGET', own, field)) or 0
  if known < at then redis.call('HSET', own, field, at) end
  if known > 0 then return end
  local agents, oldest, oldest_at = 0, field, at
  for other, time in pairs(by_name(redis.call('HGETALL', own))) do
    if string.sub(other, 1, 2) == 'a:' then
      agents = agents + 1
      local seen_at = tonumber(time) or 0
      if seen_at < oldest_at then oldest, oldest_at = other, seen_at end
    end
  end
  if agents > tonumber(most_agents) then redis.call('HDEL', own, oldest) end
end

local function add(day, field, calls)
  local reply = redis.pcall('HINCRBY', usage_day_key(day), field, calls)
  if type(reply) == 'table' then redis.call('HSET', usage_day_key(day), field, calls) end
end

local batch = cjson.decode(ARGV[5])
remove_unless(used_keys_key(), 'zset')
for day in pairs(batch.days) do remove_unless(usage_day_key(day), 'hash') end
for _, key in ipairs(batch.keys) do
  local id, client, uses, agents = key[1], key[2], key[3], key[4]
  local own = used_key_key(id)
  remove_unless(own, 'hash')
  local seen = 0
  for _, use in ipairs(uses) do
    local operation, first, last = use[1], use[2], use[3]
    local known = redis.call('HMGET', own, 'f:' .. operation, 'l:' .. operation)
    first = math.min(first, tonumber(known[1]) or first)
    last = math.max(last, tonumber(known[2]) or last)
    redis.call('HSET', own, 'f:' .. operation, first, 'l:' .. operation, last)
    seen = math.max(seen, last)
    for _, count in ipairs(use[4]) do add(count[1], id .. '|' .. operation .. '|' .. count[2], count[3]) end
  end
  if client ~= '' then redis.call('HSET', own, 'c', client) end
  for _, agent in ipairs(agents) do remember(own, agent[1], agent[2]) end
  redis.call('EXPIRE', own, kept_seconds)
  redis.call('ZADD', used_keys_key(), 'GT', seen, id)
end
for day, expiry in pairs(batch.days) do redis.call('EXPIREAT', usage_day_key(day), expiry) end
-- By the store's clock: that of an instance could be far ahead.
redis.call('ZREMRANGEBYSCORE', used_keys_key(), '-inf', '(' .. now_ms() - kept_seconds * 1000)
redis.call('EXPIRE', used_keys_key(), kept_seconds)
return 'recorded'
