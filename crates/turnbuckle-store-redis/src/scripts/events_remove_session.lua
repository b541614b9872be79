-- Removes all streams of a session.
-- KEYS: streams of the session
-- ARGV: prefix of the streams
for _, number in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('DEL', ARGV[1] .. number) end
return redis.call('DEL', KEYS[1])
