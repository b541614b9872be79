-- Stores the outcome of a claim for the time to live of the claim, if the holder still has it.
-- KEYS: claim
-- ARGV: holder, sealed outcome
local claim = redis.call('GET', KEYS[1])
if not claim then return 0 end
local holder, ttl = string.match(claim, '^1|([^|]*)|(%d+)|')
if holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '1|' .. holder .. '|' .. ttl .. '|d|' .. ARGV[2], 'PX', ttl)
return 1
