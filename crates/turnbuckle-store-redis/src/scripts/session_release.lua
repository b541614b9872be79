-- Removes sessions from the counts. Returns how many were counted.
-- KEYS: deadlines, entries, totals, sessions of owners, bytes of owners, expired sessions
-- ARGV: 1 to report the sessions as expired, prefix of the sessions of an owner, then the ids
local count = 0
for index = 3, #ARGV do
  local id = ARGV[index]
  redis.call('ZREM', KEYS[1], id)
  local entry = redis.call('HGET', KEYS[2], id)
  if entry then
    count = count + 1
    redis.call('HDEL', KEYS[2], id)
    local bytes, owner = string.match(entry, '^(%d+) %d (.*)$')
    redis.call('HINCRBY', KEYS[3], 'bytes', 0 - bytes)
    redis.call('ZREM', ARGV[2] .. owner, id)
    if tonumber(redis.call('ZINCRBY', KEYS[4], -1, owner)) <= 0 then
      redis.call('ZREM', KEYS[4], owner)
      redis.call('ZREM', KEYS[5], owner)
    else
      redis.call('ZINCRBY', KEYS[5], 0 - bytes, owner)
    end
    if ARGV[1] == '1' then redis.call('SADD', KEYS[6], id) end
  end
end
return count
