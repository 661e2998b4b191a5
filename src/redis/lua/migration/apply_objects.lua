#!lua
-- @include local_writes change
-- Writes objects of the organization's catalogue. What an operator has set here stays.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  write | dry
-- ARGV[2]  JSON, an array for each object: reference, URL
--
-- a word for each object: created, updated, unchanged, kept (set here)
local is_dry = ARGV[1] == 'dry'
local objects = objects_key()
local outcomes = {}
for position, row in ipairs(cjson.decode(ARGV[2])) do
  local have = redis.call('HGET', objects, row[1])
  local outcome = have and 'updated' or 'created'
  if have == row[2] then
    outcome = 'unchanged'
  elseif have and is_local_write('o', row[1]) then
    outcome = 'kept'
  elseif not is_dry then
    redis.call('HSET', objects, row[1], row[2])
  end
  outcomes[position] = outcome
end
return outcomes
