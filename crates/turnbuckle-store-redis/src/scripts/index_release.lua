-- Removes an entry from an index, and expired entries.
-- KEYS: expiry times (sorted set), entries (hash: bytes and owner), totals (hash)
-- ARGV: id, or an empty text to remove expired entries only
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function release(id)
  redis.call('ZREM', KEYS[1], id)
  local entry = redis.call('HGET', KEYS[2], id)
  if not entry then return end
  redis.call('HDEL', KEYS[2], id)
  local used, of = string.match(entry, '^(%d+) (.*)$')
  redis.call('HINCRBY', KEYS[3], 'bytes', 0 - used)
  if of == '' then return end
  redis.call('HINCRBY', KEYS[3], 'b ' .. of, 0 - used)
  if redis.call('HINCRBY', KEYS[3], 'n ' .. of, -1) <= 0 then
    redis.call('HDEL', KEYS[3], 'n ' .. of, 'b ' .. of)
  end
end

if ARGV[1] ~= '' then release(ARGV[1]) end
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, 1000)) do release(id) end
return 0
