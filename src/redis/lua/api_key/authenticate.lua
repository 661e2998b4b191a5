#!lua flags=allow-oom
-- @read master
-- @reply json
-- Who is calling, and what a write has to be checked against.
--
-- {kind = unknown}
-- {kind = known, caller, settings, username, at}
--   settings   comparison, min, max, pattern, template, ownership, index, epoch: false where unset
--   username   the user's current one, false if there is none
--   at         the time, ms, as text: cjson takes longer for numbers
local sha256 = ARGV[1]
local caller = find_caller(sha256)
if not caller then return { kind = 'unknown' } end
return {
  kind = 'known',
  caller = caller,
  settings = redis.call('HMGET', settings_key(), 'comparison', 'min', 'max', 'pattern', 'template', 'ownership', 'index',
    'epoch'),
  username = caller.userId and redis.call('HGET', profile_key(caller.userId), 'u') or false,
  at = now_ms(),
}
