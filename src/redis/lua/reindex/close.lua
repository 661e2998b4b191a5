#!lua flags=allow-oom
-- @wait replicas
-- Ends a rebuild: names may change again, and a commit of this rebuild that is still under way is refused.
local token = ARGV[1]
if string.match(redis.call('GET', rebuild_key()) or '', '^%S+') == token then redis.call('DEL', rebuild_key()) end
