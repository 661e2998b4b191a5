#!lua
-- @include clock keys
-- Puts a copied picture in the place of the URL it was copied from, if that is still the profile's picture. Nothing
-- else of the profile changes, nor who changed it last.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  user
-- ARGV[2]  URL
-- ARGV[3]  picture file, announced before
--
-- 'put', 'changed' or 'lapsed' (announced too long ago: it may be swept any time)
local profile = profile_key(ARGV[1])
local now = redis.call('HMGET', profile, 'pu', 'pr', 'pf')
if now[1] ~= ARGV[2] or now[2] or now[3] then return 'changed' end
local announced = redis.call('ZSCORE', unreferenced_pictures_key(), ARGV[3])
if not announced or now_ms() - announced > 300000 then return 'lapsed' end
redis.call('ZREM', unreferenced_pictures_key(), ARGV[3])
redis.call('HDEL', profile, 'pu')
redis.call('HSET', profile, 'pf', ARGV[3], 'po', ARGV[2])
return 'put'
