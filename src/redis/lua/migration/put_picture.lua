#!lua
-- @include adoptions change claim
-- Replaces the URL that a picture was copied from by the copy, if that is still the profile's picture. Nothing else in
-- the profile changes, nor who changed it last. The legacy service may have another picture at the same URL by now, if
-- since the copy was fetched the user was adopted, the outcome of a change of theirs may have come, or an upload was
-- forwarded unmarked.
--
-- 'put'
-- 'changed'   the profile has another picture: nothing was done
-- 'in-doubt'  there may be another one at the URL: nothing was done
-- 'lapsed'    the copy was pending for too long, and the sweep may remove it: nothing was done

-- adopted: the number of the user's last adoption before the copy was fetched, '' for none; fetched_from: a time before
-- both (ms), for a file of a folder a time at which it existed, 0 if unknown
local user, url, adopted, fetched_from, file, most_pending_ms = unpack(ARGV, 2)
local profile = profile_key(user)
local have = redis.call('HMGET', profile, 'pu', 'pr', 'pf', 'as', 'at')
if have[1] ~= url or have[2] or have[3] then return 'changed' end
local is_adopted_since = (have[4] or '') ~= adopted or (have[5] and tonumber(have[5]) >= tonumber(fetched_from))
if is_adopted_since or is_unsettled_after(user, tonumber(fetched_from)) or is_outdated_copy(fetched_from) then
  return 'in-doubt'
end
local pending_since = redis.call('ZSCORE', unreferenced_pictures_key(), file)
if not pending_since or now_ms() - pending_since > tonumber(most_pending_ms) then return 'lapsed' end
redis.call('ZREM', unreferenced_pictures_key(), file)
redis.call('HDEL', profile, 'pu')
redis.call('HSET', profile, 'pf', file, 'po', url, 'pt', fetched_from)
return 'put'
