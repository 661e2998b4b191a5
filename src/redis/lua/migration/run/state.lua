#!lua
-- @key any
-- @include taken_over
-- Changes the state of a run for the apply that has claimed it: what an earlier one still sends is refused.
--
-- KEYS[1]  <prefix>migration:run:<run>
-- ARGV[1]  claim (claim.lua)
-- ARGV[2]  claim | save | forget
-- ARGV[3]  save: JSON of the fields to set, and of those to remove, which are null
--
-- 'done'
local held = redis.call('HGET', KEYS[1], 'claim')
if ARGV[2] == 'claim' then
  local function token(claim) return tonumber(string.match(claim, '%d+$')) end
  if held and token(held) > token(ARGV[1]) then return taken_over() end
  redis.call('HSET', KEYS[1], 'claim', ARGV[1])
  return 'done'
end
if held ~= ARGV[1] then return taken_over() end
if ARGV[2] == 'forget' then
  redis.call('DEL', KEYS[1])
  return 'done'
end
for field, value in pairs(cjson.decode(ARGV[3])) do
  if value == cjson.null then redis.call('HDEL', KEYS[1], field) else redis.call('HSET', KEYS[1], field, value) end
end
return 'done'
