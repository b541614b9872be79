-- Removes the instances whose leases have expired, and returns them, separated by spaces.
-- KEYS: instances with the ends of their leases, nonces of the holders of slots, inboxes of instances, result of this request
local earlier = redis.call('GET', KEYS[4])
if earlier then return earlier end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expired = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, 1000)
for _, instance in ipairs(expired) do
  local slot, nonce = string.match(instance, '^(%d+)%-(.*)$')
  redis.call('ZREM', KEYS[1], instance)
  redis.call('HDEL', KEYS[3], instance)
  if redis.call('HGET', KEYS[2], slot) == nonce then redis.call('HDEL', KEYS[2], slot) end
end
local result = table.concat(expired, ' ')
-- For the same caller, if the response is lost.
if result ~= '' then redis.call('SET', KEYS[4], result, 'PX', 60000) end
return result
