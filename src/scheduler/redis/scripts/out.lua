-- Requests that are handed out, those that come back, and those that are kept as dead letters.
-- Of those that are out: who holds them, and whether they have a place of their host.
-- An entry is tag (28 bytes), place ('p' or '-'), kind ('p' page, 'r' robots.txt), length of the worker's name, worker, host.

local function entry(tag, place, kind, worker, host)
  return tag .. place .. kind .. string.char(#worker) .. worker .. host
end

-- A request that so many workers were lost with in a row may be what they are lost by.
local MOST_RETURNS = 16
local has_returns = call('EXISTS', RETURNS) == 1

-- Entries read so far, false for none; what changed is written together, before anybody looks.
local outs = {}
local changed, taken, ended = {}, {}, {}

local function unpack_out(packed)
  if not packed then
    return false
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

local function out_of(id)
  local out = outs[id]
  if out == nil then
    out = unpack_out(call('HGET', OUT, id))
    outs[id] = out
  end
  return out or nil
end

-- Reads those of the batch at once, with their hosts.
local function read_outs(size)
  local names = {}
  for first = 1, size, 3000 do
    local ids = {}
    for _ = first, math.min(first + 2999, size) do
      ids[#ids + 1] = text()
    end
    local packed = call('HMGET', OUT, unpack(ids))
    for n, id in ipairs(ids) do
      local out = unpack_out(packed[n])
      outs[id] = out
      if out then
        names[#names + 1] = out.host
      end
    end
  end
  read_hosts(names)
end

local function mine(id)
  local out = out_of(id)
  return out and out.worker == me and out or nil
end

local function keep(id)
  changed[#changed + 1] = id
end

local function write_outs()
  local entries = {}
  for _, id in ipairs(changed) do
    local out = outs[id]
    if out then
      entries[#entries + 1] = id
      entries[#entries + 1] = entry(out.tag, out.place, out.kind, out.worker, out.host)
    end
  end
  many('HSET', OUT, entries, 2)
  many('HDEL', OUT, taken, 1)
  many('ZREM', FLIGHT, taken, 1)
  many('HDEL', JOBS, ended, 1)
  for first = 1, #ended, 3000 do
    local children = {}
    for n = first, math.min(first + 2999, #ended) do
      children[#children + 1] = KIDS .. ended[n]
    end
    call('DEL', unpack(children))
  end
  if has_returns then
    many('HDEL', RETURNS, ended, 1)
  end
  changed, taken, ended = {}, {}, {}
end

local function tag_of(rank, age, id)
  return rank .. struct.pack('>I8', age) .. id
end

local function next_age(ages)
  return call('HINCRBY', META, 'age', ages) - ages
end

-- Queues a request; time 0 means that it may go at once.
local function enqueue(host, tag, time)
  local state = touch(host)
  if time > 0 then
    state.waiting = state.waiting + call('ZADD', WAIT .. host, time, tag)
  else
    state.ready = state.ready + call('ZADD', READY .. host, 0, tag)
  end
end

-- Lets what waits for a time up to `time` go.
local function ripen(name, time)
  local host = touch(name)
  while host.waiting > 0 do
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
    host.ready = host.ready + #due
    host.waiting = math.max(0, host.waiting - #due)
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
  outs[id] = false
  taken[#taken + 1] = id
  holds(out.worker, -1)
end

-- It is pending no more.
local function forget(id)
  ended[#ended + 1] = id
  books.pending = books.pending - 1
end

-- Keeps a request that ends as a dead letter, or as one that is set aside.
local function lay_up(class, id, reason)
  local kept = reason .. '\0' .. (call('HGET', JOBS, id) or '')
  if class == 'failed' then
    call('HSET', DEAD, id, kept)
    call('HINCRBY', REASONS, reason, 1)
  else
    call('HSET', ASIDE, id, kept)
  end
end

-- Queues a request again whose worker was lost, unless that happened too often. Whether it is queued.
local function come_back(id, out)
  has_returns = true
  if call('HINCRBY', RETURNS, id, 1) < MOST_RETURNS then
    enqueue(out.host, out.tag, 0)
    return true
  end
  lay_up('failed', id, 'worker_lost')
  forget(id)
  books.failed = books.failed + 1
  given_up = given_up + 1
  return false
end

-- Returns what a worker held too long. It may have sent its unsent request until then: the delay counts from there.
local function expire()
  write_outs()
  -- Who was out of touch for long, as all are after an outage of the server, lets the others renew what is theirs first.
  local before = call('ZSCORE', BEATS, me)
  if not before or now - tonumber(before) > visibility / 2 then
    return
  end
  local late = call('ZRANGEBYSCORE', FLIGHT, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 200)
  for n = 1, #late, 2 do
    local id, deadline = late[n], tonumber(late[n + 1])
    local out = out_of(id)
    if out then
      local host = host_of(out.host)
      if host.unsent == id then
        host.closed = math.max(host.closed, deadline + delay_of(host))
      end
      take_from(id, out)
      if out.kind == 'r' then
        -- Nobody waits for it any more.
        forget(id)
        books.dropped = books.dropped + 1
      elseif come_back(id, out) then
        returned = returned + 1
      end
    else
      taken[#taken + 1] = id
    end
  end
  write_outs()
end

-- Returns everything this worker holds, which may be the heir of one that was killed (`is_lost`): that one may have sent its
-- unsent request.
local function recover(is_lost)
  write_outs()
  local all = call('HGETALL', OUT)
  local back = 0
  for n = 1, #all, 2 do
    local id = all[n]
    local out = mine(id)
    if out then
      local host = host_of(out.host)
      if host.unsent == id then
        host.closed = math.max(host.closed, now + delay_of(host))
      end
      take_from(id, out)
      if out.kind == 'r' then
        forget(id)
        books.dropped = books.dropped + 1
      else
        if is_lost then
          back = back + (come_back(id, out) and 1 or 0)
        else
          enqueue(out.host, out.tag, 0)
          back = back + 1
        end
      end
    end
  end
  return back
end
