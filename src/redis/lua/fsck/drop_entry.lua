#!lua
-- @include keys names names_safely
-- Removes an entry of the name index that no profile bears out.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  generation of the name index
-- ARGV[2]  number of the bucket
-- ARGV[3]  form
-- ARGV[4]  user
-- ARGV[5]  the username the user was seen with, '' for none
-- ARGV[6]  '1' where that is the name, and the entry only stands in a bucket where nobody looks for it
--
-- 'stale', 'frozen', 'changed' or 'mended'
local refused = check_generation(ARGV[1])
if refused then return refused end
local key = names_key(ARGV[1], ARGV[2])
if redis.call('HGET', key, ARGV[3]) ~= ARGV[4] then return 'changed' end
if (fields_of(ARGV[4], 'u')[1] or '') ~= ARGV[5] then return 'changed' end
if ARGV[6] == '1' and bucket(ARGV[1], ARGV[3]) == key then return 'changed' end
redis.call('HDEL', key, ARGV[3])
return 'mended'
