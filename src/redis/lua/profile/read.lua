#!lua flags=allow-oom
-- @read master
-- @reply json
-- Contract 4.1 in one round trip: who is calling, and what does their profile say?
--
-- {kind = unknown | no-user | none | profile, caller, profile}
local sha256 = ARGV[1]
local caller = find_caller(sha256)
if not caller then return { kind = 'unknown' } end
if not caller.userId then return { kind = 'no-user', caller = caller } end
local profile = read_profile(caller.userId)
return { kind = profile and 'profile' or 'none', caller = caller, profile = profile }
