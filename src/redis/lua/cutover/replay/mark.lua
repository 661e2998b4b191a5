#!lua
-- @include replay
-- Records who is about to send an entry.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  id of the entry
-- ARGV[2]  the sender
--
-- 1, or 0 where it is not in the queue
if not queued_entry(ARGV[1]) then return 0 end
redis.call('HSET', replay_senders_key(), ARGV[1], ARGV[2])
return 1
