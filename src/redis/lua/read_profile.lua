-- Contract 4.1 in one round trip: who is calling, and what does their profile say?
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  SHA-256 of the API key, hex
--
-- One of these as JSON, which clients read in a third of the time that a reply of so many parts takes them:
--
-- ["unknown"]                       no such key
-- ["no-user", key]                  the key acts for nobody
-- ["none", key]                     the user has no profile
-- ["profile", key, profile]         key and profile as lib/credentials.lua and lib/profiles.lua return them,
--                                   null where unset
local function with_nulls(list)
  for i = 1, #list do list[i] = list[i] or cjson.null end
  return list
end
local function reply(...) return cjson.encode({ ... }) end

local key = credentials(ARGV[1])
if not key then return reply('unknown') end
local user = key[3]
with_nulls(key)
if not user then return reply('no-user', key) end
local profile = read_profile(user)
if not profile then return reply('none', key) end
return reply('profile', key, with_nulls(profile))
