#!lua flags=no-writes
-- @include sightings
-- Whether a fault that fsck has put together from several replies exists at one instant.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  JSON: what was seen (lib/sightings.lua)
--
-- 'confirmed', 'changed' or 'stale'
return what_changed() or 'confirmed'
