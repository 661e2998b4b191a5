#!lua flags=allow-oom
-- @include store
-- @wait replicas
-- Ends the listing of an organization in which nothing waits: what is queued next has to list it again (lib/change.lua).
--
-- the number of the listing that has ended, or -1 if something waits
if redis.call('XLEN', replay_key()) > 0 then return -1 end
return redis.call('INCR', replay_listing_key()) - 1
