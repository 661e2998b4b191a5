#!lua
-- @wait replicas
-- Puts the new comparison, its index and its denylist in force; names may change again.
--
-- 'lapsed'      this rebuild cannot go on (add.lua): nothing was changed
-- 'committed'   also where it had been before, and the reply was lost
local token, step, generation, comparison = unpack(ARGV)
if redis.call('GET', rebuild_key()) ~= token .. ' ' .. step then
  return redis.call('HGET', settings_key(), 'index') == generation and 'committed' or 'lapsed'
end
redis.call('HSET', settings_key(), 'comparison', comparison, 'index', generation)
redis.call('DEL', rebuild_key())
return 'committed'
