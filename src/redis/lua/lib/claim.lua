-- Every script with which a migration writes into an organization in service has this after lib/change.lua, and
-- ARGV[1] is the claim under which it writes (migration/run/claim.lua), or '' for a dry call: it returns the same and
-- changes nothing. It refuses what an apply sent before a later one of its run has claimed the organization, whenever
-- that arrives.
local is_dry = ARGV[1] == ''
if not is_dry and redis.call('HGET', claims_key(), (string.match(ARGV[1], '^[^\n]+'))) ~= ARGV[1] then
  return taken_over()
end
