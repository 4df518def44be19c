-- Makes a job, or joins it. KEYS[1] its meta hash. ARGV: format, spider, worker, its new token, visibility.
-- Answers {'ok'}, {'foreign', key}, {'newer', format} or {'spider', name}.

local META = KEYS[1]
local prefix = string.sub(META, 1, -5)
local format, spider, me, token, visibility = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local BEATS, WORKER = prefix .. 'beats', prefix .. 'worker:'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local kind = redis.call('TYPE', META).ok
if kind == 'none' then
  redis.call('HSET', META, 'format', format, 'spider', spider, 'state', 'running', 'created', now)
elseif kind ~= 'hash' then
  return { 'foreign', META }
else
  local found = redis.call('HMGET', META, 'format', 'spider', 'state')
  if not found[1] or not found[2] or not tonumber(found[1]) then
    return { 'foreign', META }
  elseif tonumber(found[1]) > tonumber(format) then
    return { 'newer', found[1] }
  elseif found[2] ~= spider then
    return { 'spider', found[2] }
  end
  -- Whoever joins after all have stopped starts the job again.
  if found[3] == 'stopping' and redis.call('ZCOUNT', BEATS, now - visibility, '+inf') == 0 then
    redis.call('HSET', META, 'state', 'running')
  end
end

-- Workers that were lost long ago and hold nothing.
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', BEATS, '-inf', now - 3600000000, 'LIMIT', 0, 100)) do
  if tonumber(redis.call('HGET', WORKER .. worker, 'held') or 0) <= 0 then
    redis.call('ZREM', BEATS, worker)
    redis.call('DEL', WORKER .. worker)
  end
end

redis.call('HDEL', WORKER .. me, 'reply')
redis.call('HSET', WORKER .. me, 'token', token, 'number', 0)
redis.call('PERSIST', WORKER .. me)
redis.call('ZADD', BEATS, now, me)
return { 'ok' }
