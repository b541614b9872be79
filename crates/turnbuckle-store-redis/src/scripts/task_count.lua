-- Counts the bytes of a task after an update, and that it has ended.
-- KEYS: entries (hash: bytes, whether the owner is shared, number, runner, owner), totals, finished tasks of shared owners
-- ARGV: 1 id, 2 bytes, 3 whether it has ended (1), 4 most bytes of the owner and 5 of all tasks (-1 for none),
--       6 prefix of the finished tasks of an owner, 7 prefix of the tasks of a runner
-- Returns 0, the number of the limit that is exceeded, or -1 if the task does not exist.
local id, bytes = ARGV[1], tonumber(ARGV[2])
local entry = redis.call('HGET', KEYS[1], id)
if not entry then return -1 end
local used, shared, number, runner, owner = string.match(entry, '^(%d+) (%d) (%d+) (%S*) (.*)$')
local more = bytes - tonumber(used)
local function exceeds(field, limit)
  return limit >= 0 and more > 0 and tonumber(redis.call('HGET', KEYS[2], field) or 0) + more > limit
end
if shared ~= '1' and exceeds('b ' .. owner, tonumber(ARGV[4])) then return 1 end
if exceeds('bytes', tonumber(ARGV[5])) then return 2 end
redis.call('HSET', KEYS[1], id, ARGV[2] .. ' ' .. shared .. ' ' .. number .. ' ' .. runner .. ' ' .. owner)
redis.call('HINCRBY', KEYS[2], 'bytes', more)
redis.call('HINCRBY', KEYS[2], 'b ' .. owner, more)
if ARGV[3] == '1' then
  redis.call('ZADD', ARGV[6] .. owner, number, id)
  if shared == '1' then redis.call('ZADD', KEYS[3], number, id) end
  if runner ~= '' then redis.call('SREM', ARGV[7] .. runner, id) end
end
return 0
