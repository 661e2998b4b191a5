-- @include store
-- One entry of the organization's audit trail; its id is its time. Field-value pairs follow the operation.
local function audit(operation, key_id, ...)
  redis.call('XADD', audit_key(), 'MAXLEN', '~', '100000', '*', 'op', operation, 'key', key_id, ...)
end
