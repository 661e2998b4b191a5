#!lua flags=allow-oom
-- @include replay
-- Removes the API keys of changes that are set aside, in an organization whose changes are no longer queued.

-- The epoch since which nothing is queued: nothing is removed if a later switch has raised it; JSON, an array of ids.
local epoch, ids = unpack(ARGV)
if tonumber(epoch_in_force()) > tonumber(epoch) then return end
for _, id in ipairs(cjson.decode(ids)) do
  local change = redis.call('HGET', replay_aside_key(), id)
  if change then
    local fields = cjson.decode(change)
    fields.sealed = ''
    redis.call('HSET', replay_aside_key(), id, cjson.encode(fields))
  end
end
