#!lua flags=allow-oom
-- Claims an organization for an apply of a run: what an earlier one still sends is refused (lib/claim.lua), also once this
-- one has ended. `load` begins to load one that does not exist, or takes it over from an earlier attempt: also where
-- Redis is full, since otherwise what has filled it could not be rolled back.
--
-- {'exists'}      claimed
-- {'begun'}       claimed, and only the holder of this claim can load it and finish the load
-- {'held', run}   another run is loading it: not claimed
-- {'absent'}      it does not exist: not claimed
-- {'damaged'}     it was in use, and has lost its settings: not claimed, since loading would overwrite what it has

-- Name of the run, epoch under which the apply writes, token of the apply (draw_token.lua), line feeds between; claim |
-- load.
local claim, action = unpack(ARGV)
local run, token = string.match(claim, '^(.*)\n.*\n(.*)$')
local held = redis.call('HGET', claims_key(), run) or '0'
if tonumber(token) < tonumber(string.match(held, '%d+$')) then return taken_over() end
local exists = redis.call('EXISTS', settings_key()) == 1
if not exists then
  if action == 'claim' then return { 'absent' } end
  local loader = string.match(redis.call('GET', loading_key()) or '', '^[^\n]+')
  if loader and loader ~= run then return { 'held', loader } end
  -- A load that is rolled back leaves none of these.
  local of_use = { claims_key(), api_key_ids_key(), local_writes_key(), audit_key() }
  if not loader and redis.call('EXISTS', unpack(of_use)) > 0 then return { 'damaged' } end
  redis.call('SET', loading_key(), claim)
end
redis.call('HSET', claims_key(), run, claim)
return { exists and 'exists' or 'begun' }
