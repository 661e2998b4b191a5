#!lua
-- @include adoptions change
-- Applies a part of a denylist change as the legacy service answered it, without checking it again. Of an overwrite, the
-- parts are staged, the first one without any name; commit makes them the denylist. A stage is of one generation.
--
-- 'frozen'             nothing was done: read the settings again and retry
-- 'lapsed'             the lease is lost: nothing was done
-- 'again'              the stage of this generation is gone, or there was none: nothing was done, begin a stage again
-- 'applied'

-- ban | remove | stage | commit; JSON, an array for each name: name, normalized name, and for a ban the replacement and
-- its normalized name; the public id of the caller's key, for the audit trail.
local token, number, kind, rows, key_id = unpack(ARGV)
local stage_lease_ms = 5000
local list = denylist_key(index)
if redis.call('GET', denylist_change_key()) ~= token then return 'lapsed' end
local stage_owner = token .. ' ' .. index
local has_stage = redis.call('GET', stage_owner_key()) == stage_owner
-- While it has an owner, nobody takes the stage for one that was left behind.
if has_stage then redis.call('PEXPIRE', stage_owner_key(), stage_lease_ms) end
if names_refused() then return 'frozen' end
rows = cjson.decode(rows)

if kind == 'ban' then
  for _, row in ipairs(rows) do
    local name, normalized_name, replacement, normalized_replacement = unpack(row)
    mark_adopted_name(normalized_name)
    -- "A name that is already denied is skipped." (contract 4.3.3)
    if not is_denied(index, normalized_name) then
      redis.call('HSET', list, normalized_name, spelling_of(name, normalized_name))
      add_audit_entry('ban', key_id, 'username', name)
      local user = holder_of(index, normalized_name)
      if user then
        release(index, normalized_name)
        local holder = holder_of(index, normalized_replacement)
        if holder and holder ~= user then take_name(index, normalized_replacement, holder, user) end
        claim(index, normalized_replacement, user)
        local from = redis.call('HGET', profile_key(user), 'u') or name
        add_audit_entry('rename', key_id, 'from', from, 'to', replacement, 'user', user)
        redis.call('HDEL', profile_key(user), 'b')
        redis.call('HSET', profile_key(user), 'u', replacement, 't', '', 'as', number, 'at', now_ms())
      end
    end
  end
elseif kind == 'remove' then
  for _, row in ipairs(rows) do
    mark_adopted_name(row[2])
    if redis.call('HDEL', list, row[2]) == 1 then add_audit_entry('remove', key_id, 'username', row[1]) end
  end
elseif kind == 'stage' and #rows == 0 then
  redis.call('UNLINK', stage_key())
  redis.call('SET', stage_owner_key(), stage_owner, 'PX', stage_lease_ms)
elseif not has_stage then
  return 'again'
elseif kind == 'stage' then
  for _, row in ipairs(rows) do redis.call('HSET', stage_key(), row[2], spelling_of(row[1], row[2])) end
else
  local before, after = redis.call('HLEN', list), redis.call('HLEN', stage_key())
  commit_stage(index)
  mark_adopted_name()
  add_audit_entry('overwrite', key_id, 'before', before, 'after', after)
end
return 'applied'
