-- Adds an entry to an index, or changes its size and expiry, if the limits allow.
-- KEYS: expiry times (sorted set), entries (hash: bytes and owner), totals (hash)
-- ARGV: id, owner, bytes, milliseconds to live,
--       then the limits, -1 for none: entries, bytes, entries of the owner, bytes of the owner
-- Returns 0, or the number of the limit that is exceeded.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, owner, bytes, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local max_entries, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local owner_entries, owner_bytes = tonumber(ARGV[7]), tonumber(ARGV[8])

local function release(expired)
  redis.call('ZREM', KEYS[1], expired)
  local entry = redis.call('HGET', KEYS[2], expired)
  if not entry then return end
  redis.call('HDEL', KEYS[2], expired)
  local used, of = string.match(entry, '^(%d+) (.*)$')
  redis.call('HINCRBY', KEYS[3], 'bytes', 0 - used)
  if of == '' then return end
  redis.call('HINCRBY', KEYS[3], 'b ' .. of, 0 - used)
  if redis.call('HINCRBY', KEYS[3], 'n ' .. of, -1) <= 0 then
    redis.call('HDEL', KEYS[3], 'n ' .. of, 'b ' .. of)
  end
end

local function release_expired(count)
  local expired = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, count)
  for _, one in ipairs(expired) do release(one) end
end

local function exceeded()
  local old_bytes, is_new = 0, 1
  local entry = redis.call('HGET', KEYS[2], id)
  if entry then old_bytes, is_new = tonumber(string.match(entry, '^%d+')), 0 end
  local function total(field) return tonumber(redis.call('HGET', KEYS[3], field) or 0) end
  if owner ~= '' then
    if owner_entries >= 0 and total('n ' .. owner) + is_new > owner_entries then return 3 end
    if owner_bytes >= 0 and total('b ' .. owner) - old_bytes + bytes > owner_bytes then return 4 end
  end
  if max_entries >= 0 and redis.call('HLEN', KEYS[2]) + is_new > max_entries then return 1 end
  if max_bytes >= 0 and total('bytes') - old_bytes + bytes > max_bytes then return 2 end
  return 0
end

release_expired(100)
if exceeded() ~= 0 then release_expired(5000) end
local limit = exceeded()
if limit ~= 0 then return limit end
release(id)
local expires = now + ttl
redis.call('ZADD', KEYS[1], expires, id)
redis.call('HSET', KEYS[2], id, ARGV[3] .. ' ' .. owner)
redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
if owner ~= '' then
  redis.call('HINCRBY', KEYS[3], 'n ' .. owner, 1)
  redis.call('HINCRBY', KEYS[3], 'b ' .. owner, bytes)
end
return 0
