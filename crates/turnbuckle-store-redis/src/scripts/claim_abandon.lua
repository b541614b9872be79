-- Removes a claim that its holder has not completed.
-- KEYS: claim
-- ARGV: holder
local claim = redis.call('GET', KEYS[1])
if not claim then return 0 end
local holder, state = string.match(claim, '^1|([^|]*)|%d+|(%a)|')
if holder ~= ARGV[1] or state ~= 'r' then return 0 end
return redis.call('DEL', KEYS[1])
