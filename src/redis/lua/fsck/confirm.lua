#!lua flags=no-writes
-- @include sightings
-- Whether a fault that fsck has put together from several replies exists at one instant.
--
-- 'confirmed' or 'changed'
return 'confirmed'
