-- For wrk: request after request, each by another user, so that nothing can be answered from a short memory.
--   wrk … -s load.lua URL -- METHOD PATH KEY-HEADER-TEMPLATE ORGANIZATION USERS FIRST BODY-TEMPLATE
-- {user} in a template becomes the user's number, {n} the request's, {turn} how often that user has had his turn,
-- {nextTurn} one more.
local next_request, users, method, path, key, organization, body, made

local function fill(template)
  local user = next_request % users
  local turn = math.floor(next_request / users)
  return (template:gsub('{user}', user):gsub('{n}', next_request):gsub('{turn}', turn):gsub('{nextTurn}', turn + 1))
end

local function format()
  local headers = { ['x-api-key'] = fill(key), ['x-platform-organization-id'] = organization }
  if body == '' then return wrk.format(method, path, headers) end
  headers['content-type'] = 'application/json'
  return wrk.format(method, path, headers, fill(body))
end

function init(args)
  method, path, key, organization = args[1], args[2], args[3], args[4]
  users, next_request, body = tonumber(args[5]), tonumber(args[6]), args[7] or ''
  made = {}
end

function request()
  local text
  if body:find('{', 1, true) and (body:find('{n}', 1, true) or body:find('urn}', 1, true)) then
    text = format()
  else
    -- The same for ever: made once for each user, so that the generator costs little of the machine.
    local user = next_request % users
    text = made[user]
    if not text then
      text = format()
      made[user] = text
    end
  end
  next_request = next_request + 1
  return text
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%f,"p50":%f,"p99":%f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
