#!lua
-- @include keys names
-- Files a denied name under its own form.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index that the form belongs to
-- ARGV[2]  the field it was found under
-- ARGV[3]  the value it was found with
-- ARGV[4]  form
-- ARGV[5]  the value it should have there
--
-- 'stale', 'frozen', 'changed' or 'mended'
local refused = check_generation(ARGV[1])
if refused then return refused end
local key = denylist_key(ARGV[1])
if redis.call('HGET', key, ARGV[2]) ~= ARGV[3] then return 'changed' end
redis.call('HDEL', key, ARGV[2])
redis.call('HSETNX', key, ARGV[4], ARGV[5])
return 'mended'
