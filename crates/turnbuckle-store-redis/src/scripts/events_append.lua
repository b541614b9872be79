-- Appends events to a stream of a session, and opens or finishes it.
-- KEYS: stream, streams of the session
-- ARGV: 1 number of the stream, 2 number of the first event, 3 number of events, 4 whether the stream ends (1), 5 sealed head and
--       6 writer (or empty texts), 7 sealed list of answered requests (or an empty text), 8 milliseconds that an open stream lives,
--       9 milliseconds that a finished stream lives, 10 most events, 11 most bytes, 12 most streams, 13 prefix of the streams,
--       then the sealed events (empty texts for events without data)
local stream, streams = KEYS[1], KEYS[2]
local first, count, writer = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[6]
-- The bytes that sealing adds.
local overhead = 45

local function make_room()
  local known = redis.call('ZRANGE', streams, 0, -1)
  local most, open = tonumber(ARGV[12]), #known
  if open < most then return true end
  local finished = false
  for _, number in ipairs(known) do
    local state = redis.call('HGET', ARGV[13] .. number, 'f')
    if not state then
      redis.call('ZREM', streams, number)
      open = open - 1
    elseif state ~= '0' and not finished then
      finished = number
    end
  end
  if open < most then return true end
  if not finished then return false end
  redis.call('DEL', ARGV[13] .. finished)
  redis.call('ZREM', streams, finished)
  return true
end

local known = redis.call('HGET', stream, 'w')
local ended = redis.call('HGET', stream, 'f') or '0'
local last = tonumber(redis.call('HGET', stream, 'n') or 0)
if known then
  if writer ~= '' and writer ~= known then return 'gone' end
  local repeated = count == 0 or first + count - 1 <= last
  if ended == '2' or (ended == '1' and not repeated) then return 'gone' end
  if ended == '1' then return 'ok' end
else
  if writer == '' then return 'gone' end
  if not make_room() then return 'many' end
  local time = redis.call('TIME')
  redis.call('HSET', stream, 'w', writer, 'h', ARGV[5], 'f', '0', 'n', 0, 'l', 0, 'o', 1, 'b', 0, 'c', 0)
  redis.call('ZADD', streams, time[1] * 1000000 + time[2], ARGV[1])
end

local state = redis.call('HMGET', stream, 'l', 'o', 'b', 'c')
local lost, oldest, bytes, stored = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
if count > 0 and first > last + 1 then
  lost = first - 1
  if stored == 0 then oldest = first end
end
for index = 1, count do
  local number, event = first + index - 1, ARGV[13 + index]
  if number > last then
    last = number
    if event ~= '' then
      redis.call('HSET', stream, number, event)
      bytes, stored = bytes + #event - overhead, stored + 1
    end
  end
end
while stored > tonumber(ARGV[10]) or (stored > 1 and bytes > tonumber(ARGV[11])) do
  local event = redis.call('HGET', stream, oldest)
  if event then
    redis.call('HDEL', stream, oldest)
    bytes, stored, lost = bytes - (#event - overhead), stored - 1, oldest
  end
  oldest = oldest + 1
end
redis.call('HSET', stream, 'n', last, 'l', lost, 'o', oldest, 'b', bytes, 'c', stored)
if ARGV[7] ~= '' then
  local answered = redis.call('HGET', stream, 'a') or ''
  redis.call('HSET', stream, 'a', answered .. string.format('%d:', #ARGV[7]) .. ARGV[7])
end
if ARGV[4] == '1' then
  redis.call('HSET', stream, 'f', '1')
  redis.call('PEXPIRE', stream, ARGV[9])
else
  redis.call('PEXPIRE', stream, ARGV[8])
end
redis.call('PEXPIRE', streams, ARGV[8])
return 'ok'
