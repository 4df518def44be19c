-- Puts requests that ended back into the queue, as new ones. KEYS[1] the job's meta hash. ARGV: 'dead' or 'aside', then id,
-- host, rank and record of each. Answers how many went back; those that are gone meanwhile do not.

local META = KEYS[1]
local prefix = string.sub(META, 1, -5)
local from = prefix .. ARGV[1]
local class = ARGV[1] == 'dead' and 'failed' or 'set_aside'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local back = 0
for at = 2, #ARGV, 4 do
  local id, host, rank, record = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local kept = redis.call('HGET', from, id)
  if kept and redis.call('HSETNX', prefix .. 'jobs', id, record) == 1 then
    redis.call('HDEL', from, id)
    if ARGV[1] == 'dead' then
      local reason = string.match(kept, '^%Z*')
      if redis.call('HINCRBY', prefix .. 'reasons', reason, -1) <= 0 then
        redis.call('HDEL', prefix .. 'reasons', reason)
      end
    end
    local age = redis.call('HINCRBY', META, 'age', 1) - 1
    redis.call('ZADD', prefix .. 'q:' .. host, 0, rank .. struct.pack('>I8', age) .. id)
    -- Its host is listed as one that may go, without a look at its clock: that is taken when work is handed out.
    local key = prefix .. 'h:' .. host
    local packed = redis.call('GET', key)
    if packed then
      local places, ready, waiting, served, closed, crawl, hop, listed = struct.unpack('>I4I4I4ddddd', packed)
      if listed < 0 then
        listed = now
        redis.call('ZADD', prefix .. 'hosts', listed, host)
      end
      packed = struct.pack('>I4I4I4ddddd', places, ready + 1, waiting, served, closed, crawl, hop, listed)
        .. string.sub(packed, 53)
    else
      packed = struct.pack('>I4I4I4ddddd', 0, 1, 0, now, 0, 0, 0, now)
      redis.call('ZADD', prefix .. 'hosts', now, host)
    end
    redis.call('SET', key, packed)
    redis.call('HINCRBY', prefix .. 'books', class, -1)
    redis.call('HINCRBY', prefix .. 'books', 'pending', 1)
    back = back + 1
  end
end
if back > 0 and redis.call('HGET', META, 'state') == 'finished' then
  redis.call('HSET', META, 'state', 'running')
end
return back
