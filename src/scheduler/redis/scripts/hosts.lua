-- Hosts: places, the unsent request, the delay clock, and the list of hosts by when they may have a request next.

local hosts = {}
local dirty = {}
local has_gates = call('EXISTS', GATES) == 1

local function host_of(name)
  local host = hosts[name]
  if not host then
    local packed = call('GET', HOST .. name)
    if packed then
      local places, served, closed, crawl, hop = struct.unpack('>I4dddd', packed)
      host = { places = places, served = served, closed = closed, crawl = crawl, hop = hop }
      host.unsent = string.sub(packed, 37)
      host.kept = true
    else
      host = { places = 0, served = now, closed = 0, crawl = 0, hop = 0, unsent = '', kept = false }
    end
    hosts[name] = host
  end
  return host
end

-- The host, to be filed anew.
local function touch(name)
  local host = host_of(name)
  if not host.dirty then
    host.dirty = true
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

-- Files the host by what it waits for, and keeps its state as long as it says anything.
local function file(name, host)
  local due
  if call('EXISTS', READY .. name) == 1 then
    due = 0
  else
    local first = call('ZRANGE', WAIT .. name, 0, 0, 'WITHSCORES')
    due = first[2] and tonumber(first[2])
  end
  if not due then
    call('ZREM', HOSTS, name)
  elseif host.places >= per_host or (host.unsent ~= '' and is_paced(host)) then
    call('ZADD', HOSTS, '+inf', name)
  else
    call('ZADD', HOSTS, math.max(due, host.closed, host.hop, host.served, gate_of(name)), name)
  end
  local packed = struct.pack('>I4dddd', host.places, host.served, host.closed, host.crawl, host.hop) .. host.unsent
  if due or host.places > 0 then
    call('SET', HOST .. name, packed)
    host.kept = true
  elseif host.closed > now then
    call('SET', HOST .. name, packed, 'PX', math.ceil((host.closed - now) / 1000))
    host.kept = true
  elseif host.kept then
    call('DEL', HOST .. name)
    host.kept = false
  end
end

local function file_touched()
  for _, name in ipairs(dirty) do
    local host = hosts[name]
    host.dirty = false
    file(name, host)
  end
  dirty = {}
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
