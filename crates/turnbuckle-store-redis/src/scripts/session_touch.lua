-- Restarts the idle timeout of a session. Returns 0 if it does not exist.
-- KEYS: session
-- ARGV: milliseconds to live before and after it was initialized
local head = redis.call('GETRANGE', KEYS[1], 0, 31)
local initialized = string.match(head, '^1|%d+|(%d)|')
if not initialized then return 0 end
local ttl = initialized == '1' and ARGV[2] or ARGV[1]
if redis.call('PTTL', KEYS[1]) < tonumber(ttl) then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1
