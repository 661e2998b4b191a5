#!lua
-- @wait replicas
-- Ends a rebuild: names may change again, and a commit of this rebuild that is still under way is refused.
--
-- 'closed'      it had not been committed, and never will be
-- 'lapsed'      it does not hold the lease: it was committed, closed, or held up for too long
local token = ARGV[1]
if string.match(redis.call('GET', rebuild_key()) or '', '^%S+') ~= token then return 'lapsed' end
redis.call('DEL', rebuild_key())
return 'closed'
