#!lua flags=allow-oom
-- @key any
-- @include cutover
-- Removes the registration of an instance.
--
-- KEYS[1]  <prefix>cutover
--
-- 1, or 0 if it was not registered
local id, reason = unpack(ARGV) -- '' if it stopped in good order; otherwise its changes are in doubt (a gap)
if redis.call('HEXISTS', KEYS[1], 'beat:' .. id) == 0 then return 0 end
forget_instance(id)
if reason ~= '' then redis.call('HSET', KEYS[1], 'gap', now_ms() .. ' ' .. reason) end
return 1
