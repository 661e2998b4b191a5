#!lua flags=allow-oom
-- @key any
-- The commands that the bridge uses and its Redis user may not run. They are tried on a key of the script's own;
-- that most of them fail for its type does not matter.
--
-- KEYS[1]  <prefix>permissions
--
-- the names of the commands, none where all is well
local key = KEYS[1]
local calls = {
  { 'set', key, '', 'px', 1000 }, { 'get', key }, { 'exists', key }, { 'type', key }, { 'pexpire', key, 1000 },
  { 'expire', key, 1 }, { 'expireat', key, 1 }, { 'persist', key }, { 'rename', key, key }, { 'unlink', key },
  { 'del', key },
  { 'hset', key, 'f', 'v' }, { 'hsetnx', key, 'f', 'v' }, { 'hget', key, 'f' }, { 'hmget', key, 'f' },
  { 'hgetall', key }, { 'hkeys', key }, { 'hlen', key }, { 'hexists', key, 'f' }, { 'hincrby', key, 'n', 1 },
  { 'hscan', key, 0 }, { 'hdel', key, 'f', 'n' }, { 'sadd', key, 'm' }, { 'srem', key, 'm' }, { 'scard', key },
  { 'smembers', key }, { 'sismember', key, 'm' }, { 'smismember', key, 'm' }, { 'sscan', key, 0 },
  { 'sunionstore', key, key }, { 'zadd', key, 1, 'm' }, { 'zscore', key, 'm' },
  { 'zrange', key, 0, 0 }, { 'zrevrange', key, 0, 0 }, { 'zrangebyscore', key, 0, 0 },
  { 'zremrangebyscore', key, 0, 0 }, { 'zrem', key, 'm' }, { 'rpush', key, 'm' }, { 'lrange', key, 0, 0 },
  { 'incr', key }, { 'incrby', key, 1 }, { 'pttl', key }, { 'xadd', key, '*', 'f', 'v' }, { 'xlen', key },
  { 'xrange', key, '-', '+' }, { 'xdel', key, '0-1' }, { 'scan', 0, 'count', 1 }, { 'dbsize' }, { 'time' },
}
-- What Redis 7.0 says, and what Redis 7.2 and Valkey say; and, with or without the word Redis, of a renamed command.
local function is_refusal(message)
  return string.find(message, "can't run this command", 1, true) or string.find(message, 'permissions to run', 1, true)
    or string.find(message, 'Unknown .-command called from script')
end
local refused = {}
for _, call in ipairs(calls) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err and is_refusal(reply.err) then refused[#refused + 1] = call[1] end
end
redis.pcall('del', key)
return refused
