-- Refuses what an apply sends after a later one of its run has claimed the run (src/migration/runs/lock.ts).
local function taken_over()
  return redis.error_reply('TAKENOVER another apply has claimed the run')
end
