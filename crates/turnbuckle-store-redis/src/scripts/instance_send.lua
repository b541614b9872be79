-- Appends a message to the inbox of the instance that has a slot, if its lease has not expired.
-- KEYS: instances with the ends of their leases, nonces of the holders of slots, inboxes of instances
-- ARGV: slot, sealed message, length of the inbox, milliseconds of the inbox
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nonce = redis.call('HGET', KEYS[2], ARGV[1])
if not nonce then return 0 end
local instance = ARGV[1] .. '-' .. nonce
local ends = redis.call('ZSCORE', KEYS[1], instance)
local inbox = redis.call('HGET', KEYS[3], instance)
if not ends or tonumber(ends) <= now or not inbox then return 0 end
redis.call('XADD', inbox, 'MAXLEN', '~', ARGV[3], '*', 'e', instance .. '|' .. ARGV[2])
redis.call('PEXPIRE', inbox, ARGV[4])
return 1
