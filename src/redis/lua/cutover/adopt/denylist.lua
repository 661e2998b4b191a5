#!lua
-- @include adoptions change
-- Applies a part of a denylist change as the legacy service answered it, without checking it again. Of an overwrite, the
-- parts are staged, the first one without any name; commit makes them the denylist.
--
-- 'frozen'             nothing was done: read the settings again and retry
-- 'lapsed'             the lease is lost: nothing was done
-- 'applied'

-- ban | remove | stage | commit; JSON, an array for each name: name, normalized name, and for a ban the replacement and
-- its normalized name.
local token, number, kind, rows = unpack(ARGV)
local list = denylist_key(index)
if redis.call('GET', denylist_change_key()) ~= token then return 'lapsed' end
if names_refused() then return 'frozen' end
rows = cjson.decode(rows)

if kind == 'ban' then
  for _, row in ipairs(rows) do
    local name, normalized_name, replacement, normalized_replacement = unpack(row)
    mark_adopted_name(normalized_name)
    -- "A name that is already denied is skipped." (contract 4.3.3)
    if not is_denied(index, normalized_name) then
      redis.call('HSET', list, normalized_name, spelling_of(name, normalized_name))
      local user = holder_of(index, normalized_name)
      if user then
        release(index, normalized_name)
        local holder = holder_of(index, normalized_replacement)
        if holder and holder ~= user then take_name(index, normalized_replacement, holder, user) end
        claim(index, normalized_replacement, user)
        redis.call('HDEL', profile_key(user), 'b')
        redis.call('HSET', profile_key(user), 'u', replacement, 't', '', 'as', number, 'at', now_ms())
      end
    end
  end
elseif kind == 'remove' then
  for _, row in ipairs(rows) do
    mark_adopted_name(row[2])
    redis.call('HDEL', list, row[2])
  end
elseif kind == 'stage' then
  if #rows == 0 then redis.call('UNLINK', stage_key()) end
  -- While it has an owner, nobody takes the stage for one that was left behind.
  redis.call('SET', stage_owner_key(), token, 'PX', 5000)
  for _, row in ipairs(rows) do redis.call('HSET', stage_key(), row[2], spelling_of(row[1], row[2])) end
  return 'applied'
else
  if redis.call('GET', stage_owner_key()) ~= token then return 'lapsed' end
  commit_stage(index)
  mark_adopted_name()
end
return 'applied'
