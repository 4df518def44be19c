-- Hosts: places, queued requests, the unsent one, the delay clock, and the list of hosts by when they may have a request next.
-- A host's state is packed as places, ready, waiting, served, closed, crawl delay, hop, listed time (-1 for none), unsent id.

local hosts = {}
local dirty = {}
local has_gates = call('EXISTS', GATES) == 1

local function unpack_host(packed)
  if not packed then
    return { places = 0, ready = 0, waiting = 0, served = now, closed = 0, crawl = 0, hop = 0, listed = -1, unsent = '' }
  end
  local places, ready, waiting, served, closed, crawl, hop, listed = struct.unpack('>I4I4I4ddddd', packed)
  return {
    places = places, ready = ready, waiting = waiting, served = served, closed = closed, crawl = crawl, hop = hop,
    listed = listed, unsent = string.sub(packed, 53), is_kept = true,
  }
end

local function pack_host(host)
  return struct.pack(
    '>I4I4I4ddddd', host.places, host.ready, host.waiting, host.served, host.closed, host.crawl, host.hop, host.listed
  ) .. host.unsent
end

local function host_of(name)
  local host = hosts[name]
  if not host then
    host = unpack_host(call('GET', HOST .. name))
    hosts[name] = host
  end
  return host
end

-- Reads many at once, for host_of.
local function read_hosts(names)
  for first = 1, #names, 3000 do
    local keys, wanted = {}, {}
    for n = first, math.min(first + 2999, #names) do
      if not hosts[names[n]] then
        wanted[#wanted + 1] = names[n]
        keys[#keys + 1] = HOST .. names[n]
      end
    end
    if #keys > 0 then
      local packed = call('MGET', unpack(keys))
      for n, name in ipairs(wanted) do
        hosts[name] = unpack_host(packed[n])
      end
    end
  end
end

-- The host, to be listed anew and written.
local function touch(name)
  local host = host_of(name)
  if not host.is_dirty then
    host.is_dirty = true
    host.is_changed = true
    dirty[#dirty + 1] = name
  end
  return host
end

local function is_paced(host)
  return delay > 0 or host.crawl > 0
end

local function gate_of(name)
  return has_gates and tonumber(call('ZSCORE', GATES, name) or 0) or 0
end

-- When the host may have a request next: -1 without work, endless while it waits for a place or for a sending.
local function due_at(name, host)
  if host.ready == 0 and host.waiting == 0 then
    return -1
  elseif host.places >= per_host or (host.unsent ~= '' and is_paced(host)) then
    return math.huge
  end
  local due = 0
  if host.ready == 0 then
    due = tonumber(call('ZRANGE', WAIT .. name, 0, 0, 'WITHSCORES')[2] or 0)
  end
  return math.max(due, host.closed, host.hop, host.served, gate_of(name))
end

-- Lists the touched hosts by what they wait for.
local function list_touched()
  local listed, gone = {}, {}
  for _, name in ipairs(dirty) do
    local host = hosts[name]
    host.is_dirty = false
    local due = due_at(name, host)
    if due ~= host.listed then
      host.listed = due
      if due < 0 then
        gone[#gone + 1] = name
      else
        listed[#listed + 1] = due == math.huge and '+inf' or due
        listed[#listed + 1] = name
      end
    end
  end
  dirty = {}
  many('ZADD', HOSTS, listed, 2)
  many('ZREM', HOSTS, gone, 1)
end

-- Keeps the hosts' states as long as they say anything.
local function write_hosts()
  local kept, gone = {}, {}
  for name, host in pairs(hosts) do
    if host.is_changed then
      if host.listed >= 0 or host.places > 0 then
        kept[#kept + 1] = HOST .. name
        kept[#kept + 1] = pack_host(host)
      elseif host.closed > now then
        call('SET', HOST .. name, pack_host(host), 'PX', math.ceil((host.closed - now) / 1000))
      elseif host.is_kept then
        gone[#gone + 1] = HOST .. name
      end
    end
  end
  for first = 1, #kept, 6000 do
    call('MSET', unpack(kept, first, math.min(first + 5999, #kept)))
  end
  for first = 1, #gone, 6000 do
    call('DEL', unpack(gone, first, math.min(first + 5999, #gone)))
  end
end

local function gate(name, sign, time)
  call('ZADD', GATES, 'GT', sign == '+' and now + time or time, name)
  has_gates = true
  touch(name)
  return 1
end

local function lift(name)
  local lifted = call('ZREM', GATES, name)
  touch(name)
  return lifted
end

local function crawl_delay(name, least)
  local host = touch(name)
  host.crawl = math.max(host.crawl, least)
  return 1
end
