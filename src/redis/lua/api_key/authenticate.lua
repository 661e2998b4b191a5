#!lua flags=allow-oom
-- @read master
-- @reply json
-- @include store
-- Who is calling, and what a write has to be checked against.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  SHA-256 of the API key, hex
--
-- {'unknown'}                       no such key
-- {'known', key, settings, name, ms} key as lib/store.lua returns it; settings {comparison, min, max, pattern,
--                                   template, ownership, index, epoch}, false where unset; name the user's current
--                                   username or false; ms the time
local key = credentials(ARGV[1])
if not key then return { 'unknown' } end
local settings = redis.call('HMGET', settings_key(), 'comparison', 'min', 'max', 'pattern', 'template', 'ownership', 'index',
  'epoch')
local name = key[3] and redis.call('HGET', profile_key(key[3]), 'u') or false
return { 'known', key, settings, name, now_ms() }
