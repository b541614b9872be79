-- Appends entries to a log. The position of an entry is the number of the counter, which is also its id in the stream.
-- KEYS: stream, counter, last batch of the publisher
-- ARGV: batch (or an empty text), length of the log, prefix of digests, milliseconds in which an equal digest is not published
--       again, then for each entry: its value, the hash of a list change (or an empty text), the digest of the list (or an
--       empty text)
local batch, length, digests, window = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if batch ~= '' and redis.call('GET', KEYS[3]) == batch then return 0 end

if redis.call('EXISTS', KEYS[2]) == 0 then
  -- A counter that begins with the time is above all positions that an earlier, lost log has given out.
  local time = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000000 + time[2]))
end

local function is_repeated(list, digest)
  if list == '' or window == 0 then return false end
  local key = digests .. list
  if digest == '' then
    redis.call('DEL', key)
    return false
  end
  if redis.call('GET', key) == digest then return true end
  redis.call('SET', key, digest, 'PX', window)
  return false
end

for index = 5, #ARGV, 3 do
  if not is_repeated(ARGV[index + 1], ARGV[index + 2]) then
    local position = redis.call('INCR', KEYS[2])
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', length, string.format('%.0f-0', position), 'e', ARGV[index])
  end
end
if batch ~= '' then redis.call('SET', KEYS[3], batch, 'PX', 600000) end
return 1
