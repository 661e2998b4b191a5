#!lua
-- @include change claim
-- Replaces the URL that a picture was copied from by the copy, if that is still the profile's picture. Nothing else in
-- the profile changes, nor who changed it last.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  claim (lib/claim.lua)
-- ARGV[2]  user
-- ARGV[3]  URL
-- ARGV[4]  picture file, pending
-- ARGV[5]  how long a picture file may be pending, in ms
--
-- 'put', 'changed' or 'lapsed' (pending for too long: the sweep may remove it)
local profile = profile_key(ARGV[2])
local now = redis.call('HMGET', profile, 'pu', 'pr', 'pf')
if now[1] ~= ARGV[3] or now[2] or now[3] then return 'changed' end
local pending_since = redis.call('ZSCORE', unreferenced_pictures_key(), ARGV[4])
if not pending_since or now_ms() - pending_since > tonumber(ARGV[5]) then return 'lapsed' end
redis.call('ZREM', unreferenced_pictures_key(), ARGV[4])
redis.call('HDEL', profile, 'pu')
redis.call('HSET', profile, 'pf', ARGV[4], 'po', ARGV[3])
return 'put'
