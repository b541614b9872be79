-- Counts a new task, and removes finished tasks if a limit is reached.
-- KEYS: expiry times, entries (hash: bytes, whether the owner is shared, number, runner, owner), totals, finished tasks of shared
--       owners
-- ARGV: 1 id, 2 owner, 3 whether the owner is shared (1), 4 milliseconds to live, 5 runner (or an empty text), 6 most tasks,
--       7 most tasks of the owner, 8 prefix of the tasks of an owner, 9 prefix of the finished tasks of an owner,
--       10 prefix of the tasks of a runner
-- Returns the number of the task (or the name of a limit), and the removed tasks.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, owner, shared = ARGV[1], ARGV[2], ARGV[3]
local removed = {}

local function remove(task)
  redis.call('ZREM', KEYS[1], task)
  local entry = redis.call('HGET', KEYS[2], task)
  if not entry then return end
  redis.call('HDEL', KEYS[2], task)
  local bytes, _, _, runner, of = string.match(entry, '^(%d+) (%d) (%d+) (%S*) (.*)$')
  redis.call('HINCRBY', KEYS[3], 'bytes', 0 - bytes)
  redis.call('ZREM', ARGV[8] .. of, task)
  redis.call('ZREM', ARGV[9] .. of, task)
  redis.call('ZREM', KEYS[4], task)
  if runner ~= '' then redis.call('SREM', ARGV[10] .. runner, task) end
  if redis.call('ZCARD', ARGV[8] .. of) == 0 then
    redis.call('HDEL', KEYS[3], 'b ' .. of)
  else
    redis.call('HINCRBY', KEYS[3], 'b ' .. of, 0 - bytes)
  end
  removed[#removed + 1] = task
end

for _, task in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, 1000)) do remove(task) end

local known = redis.call('HGET', KEYS[2], id)
if known then
  local _, _, number = string.match(known, '^(%d+) (%d) (%d+) ')
  return { number }
end

local function make_room(finished)
  local oldest = redis.call('ZRANGE', finished, 0, 0)[1]
  if oldest then remove(oldest) end
  return oldest
end

local tasks, finished = ARGV[8] .. owner, ARGV[9] .. owner
if shared ~= '1' and redis.call('ZCARD', tasks) >= tonumber(ARGV[7]) and not make_room(finished) then
  return { 'many', unpack(removed) }
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[6]) and not make_room(finished) and not make_room(KEYS[4]) then
  return { 'full', unpack(removed) }
end

-- Numbers rise with time, so that an owner without tasks needs no counter.
local number = time[1] * 1000000 + time[2]
local newest = redis.call('ZRANGE', tasks, -1, -1, 'WITHSCORES')[2]
if newest and tonumber(newest) >= number then number = tonumber(newest) + 1 end
local text = string.format('%.0f', number)
redis.call('ZADD', KEYS[1], now + ARGV[4], id)
redis.call('HSET', KEYS[2], id, '0 ' .. shared .. ' ' .. text .. ' ' .. ARGV[5] .. ' ' .. owner)
redis.call('ZADD', tasks, text, id)
if ARGV[5] ~= '' then redis.call('SADD', ARGV[10] .. ARGV[5], id) end
return { text, unpack(removed) }
