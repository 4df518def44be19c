-- Changes what the whole job is doing. KEYS[1] its meta hash. ARGV: the state. Answers the state before, or nothing without a
-- job.

local before = redis.call('HGET', KEYS[1], 'state')
if before then
  redis.call('HSET', KEYS[1], 'state', ARGV[1])
end
return before
