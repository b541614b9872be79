-- Removes an instance.
-- KEYS: instances with the ends of their leases, nonces of the holders of slots, inboxes of instances
-- ARGV: slot, nonce
local instance = ARGV[1] .. '-' .. ARGV[2]
redis.call('ZREM', KEYS[1], instance)
redis.call('HDEL', KEYS[3], instance)
if redis.call('HGET', KEYS[2], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[2], ARGV[1]) end
return 1
