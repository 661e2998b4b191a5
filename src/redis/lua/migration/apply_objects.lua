#!lua
-- @include keys local_writes
-- Brings objects into the organization's catalogue. What an operator has set here stays.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  write | dry
-- ARGV[2]  JSON, an array for each object: reference, URL
--
-- a letter for each object: c created, u updated, = is here already, k kept: set here
local is_dry = ARGV[1] == 'dry'
local objects = objects_key()
local outcomes = {}
for position, row in ipairs(cjson.decode(ARGV[2])) do
  local have = redis.call('HGET', objects, row[1])
  local outcome = have and 'u' or 'c'
  if have == row[2] then
    outcome = '='
  elseif have and is_local_write('o', row[1]) then
    outcome = 'k'
  elseif not is_dry then
    redis.call('HSET', objects, row[1], row[2])
  end
  outcomes[position] = outcome
end
return table.concat(outcomes)
