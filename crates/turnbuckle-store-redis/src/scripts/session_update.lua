-- Replaces the record of a session if it still has the version that was read.
-- KEYS: session
-- ARGV: version, new record, milliseconds to live
-- Returns 1, 0 if the version is another one, and -1 if the session does not exist.
local head = redis.call('GETRANGE', KEYS[1], 0, 31)
local version = string.match(head, '^1|(%d+)|')
if not version then return -1 end
if version ~= ARGV[1] then return 0 end
local ttl = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[3]))
redis.call('SET', KEYS[1], ARGV[2], 'PX', ttl)
return 1
