-- Returns the newest position and the entries after a position.
-- KEYS: stream, counter
-- ARGV: id of the position, most entries
return { redis.call('GET', KEYS[2]) or '0', redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2]) }
