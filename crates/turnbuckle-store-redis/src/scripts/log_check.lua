-- Returns what a reader needs to find out whether it can go on after a position: the newest position, the value at the position, and
-- whether the next entry exists. Each may be an empty text.
-- KEYS: stream, counter
-- ARGV: id of the position, id of the next position
local function value(id)
  local entries = redis.call('XRANGE', KEYS[1], id, id)
  return entries[1] and entries[1][2][2] or ''
end
return { redis.call('GET', KEYS[2]) or '', value(ARGV[1]), value(ARGV[2]) }
