-- Requests that are handed out: who holds them, and whether they have a place of their host.
-- An entry is tag (28 bytes), place ('p' or '-'), kind ('p' page, 'r' robots.txt), length of the worker's name, worker, host.

local function entry(tag, place, kind, worker, host)
  return tag .. place .. kind .. string.char(#worker) .. worker .. host
end

local function out_of(id)
  local packed = call('HGET', OUT, id)
  if not packed then
    return nil
  end
  local length = string.byte(packed, 31)
  return {
    tag = string.sub(packed, 1, 28),
    place = string.sub(packed, 29, 29),
    kind = string.sub(packed, 30, 30),
    worker = string.sub(packed, 32, 31 + length),
    host = string.sub(packed, 32 + length),
  }
end

local function mine(id)
  local out = out_of(id)
  return out and out.worker == me and out or nil
end

local function keep(id, out)
  call('HSET', OUT, id, entry(out.tag, out.place, out.kind, out.worker, out.host))
end

local function tag_of(rank, age, id)
  return rank .. struct.pack('>I8', age) .. id
end

local function next_age(ages)
  return call('HINCRBY', META, 'age', ages) - ages
end

-- Queues a request; time 0 means that it may go at once.
local function enqueue(host, tag, time)
  if time > 0 then
    call('ZADD', WAIT .. host, time, tag)
  else
    call('ZADD', READY .. host, 0, tag)
  end
  touch(host)
end

-- Lets what waits for a time up to `time` go.
local function ripen(name, time)
  while true do
    local due = call('ZRANGEBYSCORE', WAIT .. name, '-inf', time, 'LIMIT', 0, 1000)
    if #due == 0 then
      return
    end
    local ready = {}
    for _, tag in ipairs(due) do
      ready[#ready + 1] = 0
      ready[#ready + 1] = tag
    end
    many('ZADD', READY .. name, ready, 2)
    many('ZREM', WAIT .. name, due, 1)
  end
end

local function free_place(id, out)
  if out.place ~= 'p' then
    return false
  end
  out.place = '-'
  local host = touch(out.host)
  host.places = math.max(0, host.places - 1)
  if host.unsent == id then
    host.unsent = ''
  end
  return true
end

-- The request is nobody's any more.
local function take_from(id, out)
  free_place(id, out)
  call('HDEL', OUT, id)
  call('ZREM', FLIGHT, id)
  holds(out.worker, -1)
end

-- It is pending no more.
local function forget(id)
  call('HDEL', JOBS, id)
  call('DEL', KIDS .. id)
  books.pending = books.pending - 1
end

-- Returns what a worker held too long. It may have sent its unsent request until then: the delay counts from there.
local function expire()
  local late = call('ZRANGEBYSCORE', FLIGHT, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
  for n = 1, #late, 2 do
    local id, deadline = late[n], tonumber(late[n + 1])
    local out = out_of(id)
    if out then
      local host = host_of(out.host)
      if host.unsent == id then
        host.closed = math.max(host.closed, deadline + math.max(delay, host.crawl))
      end
      take_from(id, out)
      if out.kind == 'r' then
        -- Nobody waits for it any more.
        forget(id)
        books.dropped = books.dropped + 1
      else
        enqueue(out.host, out.tag, 0)
        returned = returned + 1
      end
    else
      call('ZREM', FLIGHT, id)
    end
  end
end

-- Returns everything this worker holds.
local function recover()
  local all = call('HGETALL', OUT)
  local back = 0
  for n = 1, #all, 2 do
    local id = all[n]
    local out = mine(id)
    if out then
      take_from(id, out)
      enqueue(out.host, out.tag, 0)
      back = back + 1
    end
  end
  return back
end
