-- Corrects the deadline of a counted session, which was used since.
-- KEYS: deadlines
-- ARGV: id, milliseconds to live
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
