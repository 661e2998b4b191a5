#!lua
-- @include store
-- Removes the API keys from changes that are set aside, which keys were refused, and an empty queue. For an
-- organization whose changes are not queued any more.
--
-- how many keys were removed

-- Under which nothing is queued any more: nothing is removed if a later switch has raised it.
local epoch = ARGV[1]
local removed = 0
if tonumber(epoch_in_force()) > tonumber(epoch) then return removed end
local aside = redis.call('HGETALL', replay_aside_key())
for i = 1, #aside, 2 do
  local fields = cjson.decode(aside[i + 1])
  if fields.sealed ~= '' then
    fields.sealed = ''
    redis.call('HSET', replay_aside_key(), aside[i], cjson.encode(fields))
    removed = removed + 1
  end
end
redis.call('DEL', replay_refusals_key())
if redis.call('XLEN', replay_key()) == 0 then redis.call('DEL', replay_key(), replay_senders_key()) end
return removed
