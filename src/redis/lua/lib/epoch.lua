-- @include store
-- Refuses a change of an instance that a switch of authority has left behind: its epoch is lower than the one that the
-- switch raised in the settings. So nothing from before can land later: no change of a paused instance, no command that
-- was still in a socket. The epoch comes before the script's own ARGV, which are counted without it.
local epoch = tonumber(table.remove(ARGV, 1))
do
  local current = tonumber(redis.call('HGET', settings_key(), 'epoch') or '0')
  if epoch < current then
    return redis.error_reply('OUTDATED the change was admitted under epoch ' .. epoch .. ', now it is ' .. current)
  end
end
