#!lua flags=allow-oom
-- @key any
-- @include cutover
-- Removes the registration of an instance.
--
-- KEYS[1]  <prefix>cutover
local id, reason = unpack(ARGV) -- '' if it stopped in good order; otherwise its changes are in doubt (a gap)
if redis.call('HEXISTS', KEYS[1], 'beat:' .. id) == 0 then return end
forget_instance(id)
if reason ~= '' then redis.call('HSET', KEYS[1], 'gap', now_ms() .. ' ' .. reason) end
