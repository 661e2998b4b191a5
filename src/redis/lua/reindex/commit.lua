#!lua
-- @wait replicas
-- @include store
-- In one instant for every client: the new comparison holds, its index and its denylist are in force, and names may
-- change again.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  the next generation
-- ARGV[3]  the comparison
--
-- 'lapsed'      this rebuild was held up for longer than its lease: nothing was changed
-- 'committed'   also where it had been before, and the reply was lost
if redis.call('GET', rebuild_key()) ~= ARGV[1] then
  return redis.call('HGET', settings_key(), 'index') == ARGV[2] and 'committed' or 'lapsed'
end
redis.call('HSET', settings_key(), 'comparison', ARGV[3], 'index', ARGV[2])
redis.call('DEL', rebuild_key())
return 'committed'
