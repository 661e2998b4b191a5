#!lua
-- @wait replicas
-- @include change
-- Contract 4.5, second step, for a part of the list: from here on nobody can claim these names, so what is
-- found unused stays unused until the stage is committed or dropped.
--
-- ARGV[3…] two for each name: name, normalized name
--
-- {'lapsed'}                        another overwrite has the stage, or none: start again
-- {'frozen'}                        nothing was done: read the settings again and retry
-- {'staged', added, positions}      how many names are new to the stage; those in use, counted from 0
local token, lease_ms = unpack(ARGV, 1, 2)
local stage = stage_key()
if redis.call('GET', stage_owner_key()) ~= token then return { 'lapsed' } end
if names_refused() then return { 'frozen' } end

local added, in_use, names = 0, {}, {}
for i = 3, #ARGV, 2 do
  local name, normalized_name = ARGV[i], ARGV[i + 1]
  added = added + redis.call('HSET', stage, normalized_name, spelling_of(name, normalized_name))
  names[#names + 1] = name
  if holder_of(index, normalized_name) then in_use[#in_use + 1] = (i - 3) / 2 end
end
redis.call('PEXPIRE', stage_owner_key(), lease_ms)
if queued then
  -- Kept for the replay once the overwrite is committed.
  redis.call('RPUSH', replay_list_key(token), cjson.encode(names))
  redis.call('PEXPIRE', replay_list_key(token), lease_ms)
end
return { 'staged', added, in_use }
