-- Takes sessions that have expired, and returns them.
-- KEYS: expired sessions, result of this request
-- ARGV: most sessions
local earlier = redis.call('GET', KEYS[2])
if earlier then return earlier end
local result = table.concat(redis.call('SPOP', KEYS[1], ARGV[1]), ' ')
-- For the same caller, if the response is lost.
if result ~= '' then redis.call('SET', KEYS[2], result, 'PX', 60000) end
return result
