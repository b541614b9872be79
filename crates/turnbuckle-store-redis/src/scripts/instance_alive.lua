-- Returns whether an instance has a lease.
-- KEYS: instances with the ends of their leases
-- ARGV: instance
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
return (ends and tonumber(ends) > now) and 1 or 0
