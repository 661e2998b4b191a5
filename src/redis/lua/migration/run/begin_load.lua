#!lua
-- @include store
-- Begins to load an organization, or takes it over from an earlier attempt of the same run.
--
-- KEYS[1]  <prefix>{organization}:
-- ARGV[1]  name of the run
-- ARGV[2]  epoch under which it loads
-- ARGV[3]  token of the run's lock
--
-- {'begun'}       only who has this token can load it and finish the load
-- {'held', run}   another run is loading it
-- {'exists'}
if redis.call('EXISTS', settings_key()) == 1 then return { 'exists' } end
local run = string.match(redis.call('GET', loading_key()) or '', '^[^\n]+')
if run and run ~= ARGV[1] then return { 'held', run } end
redis.call('SET', loading_key(), table.concat(ARGV, '\n'))
return { 'begun' }
