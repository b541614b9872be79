-- Finishes an open stream of a writer that has stopped, with last events. Returns whether it did.
-- KEYS: stream
-- ARGV: writer, number after which the events come, milliseconds that a finished stream lives, then the sealed events
local state = redis.call('HMGET', KEYS[1], 'w', 'f', 'n', 'l', 'c', 'o')
if state[1] ~= ARGV[1] or state[2] ~= '0' then return 0 end
local last, lost, stored, oldest = tonumber(state[3]), tonumber(state[4]), tonumber(state[5]), tonumber(state[6])
local after = tonumber(ARGV[2])
-- Numbers above this are no longer exact.
if after > last and after < 9007199254740000 then
  if #ARGV > 3 then lost = after end
  if stored == 0 then oldest = after + 1 end
  last = after
end
for index = 4, #ARGV do
  last = last + 1
  if ARGV[index] ~= '' then
    redis.call('HSET', KEYS[1], last, ARGV[index])
    stored = stored + 1
  end
end
redis.call('HSET', KEYS[1], 'f', '2', 'n', last, 'l', lost, 'c', stored, 'o', oldest)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
