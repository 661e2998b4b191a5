#!lua
-- @wait replicas
-- @include sightings
-- Makes a repair, unless what it is based on has changed since fsck saw it: an optimistic transaction, as WATCH and
-- MULTI make one, but on a connection that others share.
--
-- ARGV[1]  JSON: what was seen (lib/sightings.lua), and the repair:
--            claim      [normalized name, user]: the index gives it to this user, whoever had it; may be absent
--            commands   [[command, argument…]…]
--            audit      [field, value…]: what the audit trail keeps of it; absent for no entry
--
-- 'changed'     nothing was done
-- 'busy'        the same: a rebuild is under way, a denylist overwrite has yet to decide about the name, or the audit
--               trail is a key of another type
-- 'repaired'
if generation and redis.call('EXISTS', rebuild_key()) == 1 then return 'busy' end
if sighting.audit and not is_type(audit_key(), 'stream') then return 'busy' end
if sighting.claim then
  local normalized_name, user = unpack(sighting.claim)
  if is_staged(normalized_name) then return 'busy' end
  local key = bucket(generation, normalized_name)
  if not is_type(key, 'hash') then redis.call('UNLINK', key) end
  release(generation, normalized_name)
  claim(generation, normalized_name, user)
end
for _, command in ipairs(sighting.commands) do redis.call(unpack(command)) end
if sighting.audit then add_audit_entry('repair', 'operator', unpack(sighting.audit)) end
return 'repaired'
