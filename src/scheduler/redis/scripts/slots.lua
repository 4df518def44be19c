-- Hosts with queued work, each followed by the earliest time of one of its requests. KEYS[1] the job's meta hash.

local prefix = string.sub(KEYS[1], 1, -5)
local answer = {}
for _, name in ipairs(redis.call('ZRANGE', prefix .. 'hosts', 0, -1)) do
  answer[#answer + 1] = name
  if redis.call('EXISTS', prefix .. 'q:' .. name) == 1 then
    answer[#answer + 1] = 0
  else
    answer[#answer + 1] = tonumber(redis.call('ZRANGE', prefix .. 'w:' .. name, 0, 0, 'WITHSCORES')[2])
  end
end
return answer
