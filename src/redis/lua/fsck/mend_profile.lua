#!lua
-- @include clock keys names_safely
-- Gives a profile without one a time of its last change, and keeps its picture file from being swept.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
--
-- 'mended' or 'changed'
local profile = profile_key(ARGV[1])
local fields = fields_of(ARGV[1], 't', 'pf')
if redis.call('EXISTS', profile) == 0 then return 'changed' end
if not string.match(fields[1] or 'none', '^%d*$') then redis.call('HSET', profile, 't', now_ms()) end
if fields[2] then redis.call('ZREM', unreferenced_pictures_key(), fields[2]) end
return 'mended'
