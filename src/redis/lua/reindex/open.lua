#!lua
-- @include freeze keys names
-- Another comparison, first step: names freeze, and the next generation of the index gets its number. Numbers
-- never come twice, so what a dead tool left of one generation cannot get into another.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  token of this rebuild
-- ARGV[2]  lease in ms: the freeze of a tool that died ends by itself
-- ARGV[3]  the comparison wanted
--
-- {'unknown-organization'} {'unchanged'}
-- {'busy'}                          another rebuild, or its cleaning up, is under way
-- {'opened', generation, next}
local settings = settings_key()
local now = redis.call('HMGET', settings, 'comparison', 'index', 'building')
if not now[1] then return { 'unknown-organization' } end
if now[1] == ARGV[3] then return { 'unchanged' } end
if not redis.call('SET', rebuild_key(), ARGV[1], 'NX', 'PX', ARGV[2]) then return { 'busy' } end
local index = now[2] or '0'
local following = string.format('%.0f', math.max(tonumber(index), tonumber(now[3] or '0')) + 1)
redis.call('HSET', settings, 'building', following, 'n' .. following, size_of(index).count)
freeze(ARGV[1], ARGV[2])
return { 'opened', index, following }
