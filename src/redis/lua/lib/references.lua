-- @include store
-- Percent-encodes as JavaScript's encodeURIComponent does.
local function encoded(text)
  return (string.gsub(text, "[^%w%-_.!~*'()]", function(byte) return string.format('%%%02X', string.byte(byte)) end))
end

-- The URL of a reference without its own: from the catalogue, else by the organization's template; or nil.
local function url_of(reference)
  local listed = redis.call('HGET', objects_key(), reference)
  if listed then return listed end
  local template = redis.call('HGET', settings_key(), 'template')
  if not template then return nil end
  local datasource, object = string.match(reference, '^([^\n]*)\n(.*)$')
  local ids = { datasourceId = encoded(datasource), objectDefinitionId = encoded(object) }
  return (string.gsub(template, '{(%a+)}', ids))
end
