#!lua flags=allow-oom
-- @read master
-- @reply json
-- @include store
-- Contract 4.1 in one round trip: who is calling, and what does their profile say?
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  SHA-256 of the API key, hex
--
-- {'unknown'}                       no such key
-- {'no-user', key}                  the key acts for nobody
-- {'none', key}                     the user has no profile
-- {'profile', key, profile}         key and profile as lib/store.lua returns them
local key = credentials(ARGV[1])
if not key then return { 'unknown' } end
if not key[3] then return { 'no-user', key } end
local profile = read_profile(key[3])
if not profile then return { 'none', key } end
return { 'profile', key, profile }
