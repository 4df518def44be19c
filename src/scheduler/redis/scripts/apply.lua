-- The operations by their letters, and the answer.

local operations = {
  O = function() return offer(text(), count(), count()) end,
  A = function() return admit(text(), text(), text(), text(), text()) end,
  B = function() return put_back(text(), count(), text(), text(), text(), text()) end,
  R = function() return give_back(text(), count()) end,
  H = function() return replace(text(), text(), text(), text()) end,
  K = function() return follow(text(), text(), text(), text(), text()) end,
  S = function() return settle(text(), text(), text()) end,
  M = function() return call('SADD', SEEN, text()) end,
  T = function() return sent(text(), text(), count(), count(), count()) end,
  J = function() return hear(text(), count(), count(), count()) end,
  F = function() return freed(text()) end,
  G = function() return gate(text(), text(), count()) end,
  g = function() return pause(text(), count()) end,
  L = function() return lift(text()) end,
  D = function() return crawl_delay(text(), count()) end,
  P = function() return place(text(), text()) end,
  N = function() return renew(count()) end,
  Q = function() return lease(count()) end,
  U = function() return pull(text(), count()) end,
  Z = function() return claim(text()) end,
  z = function() return finish(text()) end,
  E = function() return conclude() end,
  C = function() advance('start', count()) advance('idle', count()) return 1 end,
  W = function() call('HSET', META, 'state', text()) return 1 end,
  V = function() call('HSET', STATES, text(), text()) return 1 end,
  X = function() return recover(true) end,
  Y = function() return leave() end,
}

read_outs(count())
local answers = {}
while at < #ARGV do
  answers[#answers + 1] = operations[text()]()
end
write_outs()
list_touched()
write_hosts()

for name, change in pairs(books) do
  if change ~= 0 then
    call('HINCRBY', BOOKS, name, change)
  end
end
for worker, change in pairs(held) do
  if change ~= 0 and (worker == me or call('EXISTS', WORKER .. worker) == 1) then
    call('HINCRBY', WORKER .. worker, 'held', change)
  end
end
if returned > 0 then
  call('HINCRBY', META, 'returned', returned)
end
if given_up > 0 then
  call('HINCRBY', META, 'given_up', given_up)
end
if is_leaving then
  call('ZREM', BEATS, me)
else
  call('ZADD', BEATS, now, me)
end

-- The job as it stands now; `next` is one more than the time, 0 if there is none.
local stand = call('HMGET', BOOKS, 'enqueued', 'handled', 'failed', 'dropped', 'set_aside', 'pending')
for n = 1, 6 do
  stand[n] = tonumber(stand[n] or 0)
end
local job = call('HMGET', META, 'state', 'start_cursor', 'idle_cursor', 'start_done', 'returned', 'given_up')
local idle_by = claimant('idle')
local due = call('ZRANGEBYSCORE', HOSTS, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
stand[7] = call('ZCARD', FLIGHT)
stand[8] = tonumber(call('HGET', SELF, 'held') or 0)
stand[9] = call('ZCOUNT', BEATS, now - visibility, '+inf')
stand[10] = job[1]
stand[11] = tonumber(job[2] or 0)
stand[12] = tonumber(job[3] or 0)
stand[13] = job[4] == '1' and 1 or 0
stand[14] = job[4] ~= '1' and not claimant('start') and 1 or 0
stand[15] = idle_by and idle_by ~= me and 1 or 0
stand[16] = due[2] and math.max(0, tonumber(due[2]) - now) + 1 or 0
stand[17] = tonumber(job[5] or 0)
stand[18] = tonumber(job[6] or 0)

local reply = { answers, stand, missed }
call('HSET', SELF, 'number', number, 'reply', cmsgpack.pack(reply))
if is_leaving then
  -- Kept for a while, should the answer be lost.
  call('PEXPIRE', SELF, 600000)
end
return reply
