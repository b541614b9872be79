-- Extends a lease that has not expired.
-- KEYS: instances with the ends of their leases, inbox
-- ARGV: instance, milliseconds of the lease, milliseconds of the inbox
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
