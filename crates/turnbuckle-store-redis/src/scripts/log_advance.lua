-- Skips positions, so that all readers notice that entries were lost. Returns the new position.
-- KEYS: counter
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local position = tonumber(redis.call('GET', KEYS[1]) or 0)
if position + 1 > now then now = position + 1 end
local text = string.format('%.0f', now)
redis.call('SET', KEYS[1], text)
return text
