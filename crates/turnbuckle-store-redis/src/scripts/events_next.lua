-- Appends an event with the next number to an open stream. Returns the number, or 0.
-- KEYS: stream
-- ARGV: sealed event, milliseconds that an open stream lives, most events, most bytes
if redis.call('HGET', KEYS[1], 'f') ~= '0' then return 0 end
local overhead = 45
local state = redis.call('HMGET', KEYS[1], 'n', 'l', 'o', 'b', 'c')
local last, lost, oldest = tonumber(state[1]) + 1, tonumber(state[2]), tonumber(state[3])
local bytes, stored = tonumber(state[4]), tonumber(state[5])
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[1], last, ARGV[1])
  bytes, stored = bytes + #ARGV[1] - overhead, stored + 1
end
while stored > tonumber(ARGV[3]) or (stored > 1 and bytes > tonumber(ARGV[4])) do
  local event = redis.call('HGET', KEYS[1], oldest)
  if event then
    redis.call('HDEL', KEYS[1], oldest)
    bytes, stored, lost = bytes - (#event - overhead), stored - 1, oldest
  end
  oldest = oldest + 1
end
redis.call('HSET', KEYS[1], 'n', last, 'l', lost, 'o', oldest, 'b', bytes, 'c', stored)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return last
