-- Returns the newest position of a log, and begins the log if it is new.
-- KEYS: counter
local position = redis.call('GET', KEYS[1])
if position then return position end
local time = redis.call('TIME')
position = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], position)
return position
