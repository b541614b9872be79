-- Replaces the record of a task if it still has the number of changes that was read.
-- KEYS: task
-- ARGV: number of changes, new record
-- Returns 1, 0 if the number is another one, and -1 if the task does not exist.
local changes = string.match(redis.call('GETRANGE', KEYS[1], 0, 31), '^1|(%d+)|')
if not changes then return -1 end
if changes ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
