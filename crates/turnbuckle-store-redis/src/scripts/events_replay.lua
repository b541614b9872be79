-- Returns the events after a number: writer, head, answered requests, last number, lost number, state, 1 if there are more, then
-- number and event. Returns an empty list if the number was never assigned.
-- KEYS: stream
-- ARGV: number, most events
local state = redis.call('HMGET', KEYS[1], 'w', 'h', 'a', 'n', 'l', 'f', 'o')
if not state[1] then return {} end
local after, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = tonumber(state[4])
if after == 0 or (after > last and state[6] ~= '0') then return {} end
local events, more = {}, '0'
for number = math.max(after + 1, tonumber(state[7])), last do
  local event = redis.call('HGET', KEYS[1], number)
  if event then
    if #events == 2 * limit then
      more = '1'
      break
    end
    events[#events + 1] = string.format('%.0f', number)
    events[#events + 1] = event
  end
end
local result = { state[1], state[2], state[3] or '', state[4], state[5], state[6], more }
for _, value in ipairs(events) do result[#result + 1] = value end
return result
