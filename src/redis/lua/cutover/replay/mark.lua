#!lua flags=allow-oom
-- @wait replicas
-- @include replay
-- Records who is about to send an entry, unless another sender has begun to meanwhile. A replica must have this before
-- the entry is sent: otherwise, after a failover, another instance would send the entry as if nobody had.
--
-- who is to send it now, '' if it is not in the queue

-- seen: who had begun to send it when the sender looked, '' for nobody; answer: why it is sent again, '' if it is not
local id, sender, seen, answer = unpack(ARGV)
if not queued_entry(id) then return '' end
local known = redis.call('HGET', replay_senders_key(), id) or ''
if known ~= sender and known ~= seen then return known end
redis.call('HSET', replay_senders_key(), id, sender)
if answer ~= '' then
  local before = redis.call('HGET', replay_senders_key(), id .. ' retried')
  local since = before and string.match(before, '^%d+') or now_ms()
  redis.call('HSET', replay_senders_key(), id .. ' retried', since .. ' ' .. answer)
end
return sender
