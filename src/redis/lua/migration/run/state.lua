#!lua flags=allow-oom
-- @key any
-- Changes the state of a run for the apply that has claimed it, also where Redis is full: what an earlier one still
-- sends is refused.
--
-- KEYS[1]  <prefix>migration:run:<run>
--
-- 'done'

-- action: claim | check | save | forget; state: what to save, JSON.
local claim, action, state = unpack(ARGV)
local held = redis.call('HGET', KEYS[1], 'claim')
if action == 'claim' then
  local function token(of) return tonumber(string.match(of, '%d+$')) end
  if held and token(held) > token(claim) then return taken_over() end
  redis.call('HSET', KEYS[1], 'claim', claim)
  return 'done'
end
if held ~= claim then return taken_over() end
if action == 'forget' then redis.call('DEL', KEYS[1]) end
if action == 'save' then redis.call('HSET', KEYS[1], 'state', state) end
return 'done'
