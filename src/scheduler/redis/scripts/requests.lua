-- What becomes of requests that are out.

local function admit(kind, id, host, rank, record)
  write_outs()
  if call('HSETNX', JOBS, id, record) == 0 then
    return 0
  end
  call('HSET', OUT, id, entry(tag_of(rank, next_age(1), id), '-', kind, me, host))
  outs[id] = nil
  call('ZADD', FLIGHT, now + visibility, id)
  holds(me, 1)
  books.enqueued = books.enqueued + 1
  books.pending = books.pending + 1
  return 1
end

local function put_back(sign, time, id, host, rank, record)
  local out = mine(id)
  if not out then
    return 0
  end
  take_from(id, out)
  call('HSET', JOBS, id, record)
  if has_returns then
    call('HDEL', RETURNS, id)
  end
  if sign == '+' and time > 0 then
    time = now + time
  end
  enqueue(host, tag_of(rank, next_age(1), id), time)
  return 1
end

-- What a request of this worker has become: it asks for a place of its new host, and comes back as this if it is lost.
local function replace(id, host, rank, record)
  local out = mine(id)
  if not out then
    return 0
  end
  if out.host ~= host then
    free_place(id, out)
    out.host = host
  end
  out.tag = rank .. string.sub(out.tag, 5)
  keep(id)
  call('HSET', JOBS, id, record)
  return 1
end

-- Replaces a request by its redirect's target, unless that was seen before: 0. Of one that is another worker's now nothing is
-- seen, since that one has to follow the redirect again.
local function follow(key, id, host, rank, record)
  if mine(id) and call('SADD', SEEN, key) == 0 then
    return 0
  end
  replace(id, host, rank, record)
  return 1
end

local function give_back(id, after)
  local out = mine(id)
  if not out then
    return 0
  end
  take_from(id, out)
  enqueue(out.host, out.tag, after > 0 and now + after or 0)
  return 1
end

local function settle(id, class, reason)
  local out = mine(id)
  if not out then
    return 0
  end
  local host = host_of(out.host)
  if host.unsent == id then
    -- It has ended and nobody said that it was not sent: as when its worker was killed in between.
    host.closed = math.max(host.closed, now + delay_of(host))
  end
  take_from(id, out)
  if out.kind == 'p' and (class == 'failed' or class == 'set_aside') then
    lay_up(class, id, reason)
  end
  forget(id)
  books[class] = books[class] + 1
  return 1
end

local function sent(name, id, ago, pause, factor)
  local host = touch(name)
  -- When it was returned meanwhile, another worker may be about to send it.
  if host.unsent == id and mine(id) then
    host.unsent = ''
  end
  count_sent(host, now - ago, pause, factor)
  return 1
end

local function freed(id)
  local out = mine(id)
  if not out or not free_place(id, out) then
    return 0
  end
  keep(id)
  return 1
end

local function renew(size)
  local lost = {}
  for _ = 1, size do
    local id = text()
    if mine(id) then
      call('ZADD', FLIGHT, now + visibility, id)
    else
      lost[#lost + 1] = id
    end
  end
  return lost
end
