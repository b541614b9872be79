-- Counts a session for its owner, or changes its size and rank, if the limits allow.
-- KEYS: deadlines, entries (hash: bytes, whether initialized, owner), totals, sessions of owners, bytes of owners
-- ARGV: id, owner, bytes, milliseconds to live, 1 if initialized, prefix of the sessions of an owner,
--       then the limits: sessions, bytes, sessions of the owner, bytes of the owner
-- Returns 0, or the number of the limit that is exceeded.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, owner, bytes, initialized = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5]
local known = redis.call('HGET', KEYS[2], id)
local old = known and tonumber(string.match(known, '^%d+')) or 0
local more = bytes - old

if not known and tonumber(redis.call('ZSCORE', KEYS[4], owner) or 0) >= tonumber(ARGV[9]) then return 3 end
if more > 0 and tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0) + more > tonumber(ARGV[10]) then return 4 end
if not known and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[7]) then return 1 end
if more > 0 and tonumber(redis.call('HGET', KEYS[3], 'bytes') or 0) + more > tonumber(ARGV[8]) then return 2 end

local deadline = now + ARGV[4]
redis.call('HSET', KEYS[2], id, ARGV[3] .. ' ' .. initialized .. ' ' .. owner)
if known then
  redis.call('ZADD', KEYS[1], 'GT', deadline, id)
else
  redis.call('ZADD', KEYS[1], deadline, id)
  redis.call('ZINCRBY', KEYS[4], 1, owner)
end
if more ~= 0 then
  redis.call('HINCRBY', KEYS[3], 'bytes', more)
  redis.call('ZINCRBY', KEYS[5], more, owner)
end
-- Sessions that are not initialized are evicted first.
redis.call('ZADD', ARGV[6] .. owner, deadline + initialized * 1000000000000000, id)
return 0
