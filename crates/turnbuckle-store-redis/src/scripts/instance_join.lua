-- Gives a free slot to an instance, and a lease. Slots are reused as late as possible.
-- KEYS: instances with the ends of their leases (sorted set), nonces of the holders of slots, inboxes of instances
-- ARGV: nonce, milliseconds of the lease, inbox, number of slots
-- Returns the slot, or -1.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = tonumber(ARGV[4])
local first = tonumber(redis.call('HGET', KEYS[2], 'next') or 0)
for offset = 0, count - 1 do
  local slot = (first + offset) % count
  local holder = redis.call('HGET', KEYS[2], slot)
  local ends = holder and redis.call('ZSCORE', KEYS[1], slot .. '-' .. holder)
  if not ends or tonumber(ends) <= now then
    local instance = slot .. '-' .. ARGV[1]
    redis.call('HSET', KEYS[2], slot, ARGV[1], 'next', (slot + 1) % count)
    redis.call('HSET', KEYS[3], instance, ARGV[3])
    redis.call('ZADD', KEYS[1], now + ARGV[2], instance)
    return slot
  end
end
return -1
