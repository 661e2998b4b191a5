#!lua flags=allow-oom
-- Removes keys of an organization that is being loaded, also where Redis is full.
--
-- ARGV[2…] the keys
--
-- 'removed', or 'lost' where this attempt may no longer load the organization: nothing was done

-- The claim under which it is loaded (claim.lua).
local claim = ARGV[1]
if redis.call('GET', loading_key()) ~= claim then return 'lost' end
for position = 2, #ARGV do redis.call('UNLINK', ARGV[position]) end
return 'removed'
