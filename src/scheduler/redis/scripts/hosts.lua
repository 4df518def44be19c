-- Hosts: places, queued requests, the unsent one, the delay clock, and the list of hosts by when they may have a request next.
-- A host's state is packed as places, ready, waiting, served, closed, crawl delay, hop, listed time (-1 for none), unsent id.

local hosts = {}
local dirty = {}
local has_gates = call('EXISTS', GATES) == 1
local has_pauses = call('EXISTS', PAUSES) == 1

-- Hosts with rules of their own: places, delay, whether throttled, length of the name, name.
local rules = {}
do
  local packed, from = ARGV[3], 1
  while from <= #packed do
    local per, least, throttles, length = struct.unpack('>I4dBI2', packed, from)
    rules[string.sub(packed, from + 15, from + 14 + length)] = { per = per, least = least, throttles = throttles == 1 }
    from = from + 15 + length
  end
end
local common = { per = per_host, least = delay, throttles = throttle.on }

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
    host.name, host.rule = name, rules[name] or common
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
        local host = unpack_host(packed[n])
        host.name, host.rule = name, rules[name] or common
        hosts[name] = host
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

-- What the answers of a throttled host have led to: delay, floor, and when it last refused.
local function found_of(host)
  if not host.found then
    local packed = call('GET', THROTTLE .. host.name)
    if packed then
      local found, floor, refused = struct.unpack('>ddd', packed)
      host.found = { delay = found, floor = floor, refused = refused }
    else
      host.found = { delay = math.max(math.min(throttle.start, throttle.max), host.rule.least), floor = 0, refused = 0 }
    end
  end
  return host.found
end

-- The host's delay, before jitter.
local function delay_of(host)
  local own = host.rule.least
  if host.rule.throttles then
    own = math.max(math.min(found_of(host).delay, throttle.max), own)
  end
  return math.max(own, host.crawl)
end

local function is_paced(host)
  return host.rule.throttles or per_minute > 0 or delay_of(host) > 0
end

local function gate_of(name)
  local till = has_gates and tonumber(call('ZSCORE', GATES, name) or 0) or 0
  return math.max(till, has_pauses and tonumber(call('ZSCORE', PAUSES, name) or 0) or 0)
end

-- When the host's last minute has room again.
local function minute_of(host)
  if per_minute == 0 then
    return 0
  end
  if not host.minute then
    local nth = call('LINDEX', MINUTE .. host.name, per_minute - 1)
    host.minute = nth and tonumber(nth) + 60000000 or 0
  end
  return host.minute
end

local function count_minute(host, at)
  if per_minute > 0 then
    local key = MINUTE .. host.name
    call('LPUSH', key, string.format('%.0f', at))
    call('LTRIM', key, 0, per_minute - 1)
    call('PEXPIRE', key, 60000)
    host.minute = nil
  end
end

-- A request was sent: the next one waits for the host's delay, times a factor in millionths, and for `pause` at least.
local function count_sent(host, at, pause, factor)
  local wait = math.max(pause, host.crawl)
  if host.rule.throttles then
    local found = found_of(host)
    wait = math.max(wait, delay_of(host) * factor / 1000000, math.min(found.floor, throttle.max))
  end
  host.closed = math.max(host.closed, at + wait)
  count_minute(host, at)
end

-- An answer moves the delay of a throttled host, as throttle.rs has it: the delay before and after, or nothing.
local function hear(name, status, latency, ago)
  local host = touch(name)
  if not host.rule.throttles then
    return {}
  end
  local found, least = found_of(host), host.rule.least
  local function within(time)
    return math.max(math.min(time, throttle.max), least)
  end
  local before = found.delay
  local aim = latency / throttle.target
  local to = within(math.max(aim, (before + aim) / 2))
  if status == 200 then
    local floor = math.min(found.floor, throttle.max)
    found.floor = floor < 1000 and 0 or floor - floor / 64
    found.delay = math.max(to, found.floor)
  elseif (status == 429 or status == 503) and now - ago >= found.refused then
    local raised = math.max(math.max(before, found.floor) * 2, 100000)
    found.delay = math.max(within(math.max(raised, to)), before)
    found.floor, found.refused = found.delay, now
  else
    found.delay = math.max(before, to)
  end
  call('SET', THROTTLE .. name, struct.pack('>ddd', found.delay, found.floor, found.refused), 'PX', 3600000)
  return { math.floor(before), math.floor(found.delay) }
end

-- When the host may have a request next: -1 without work, endless while it waits for a place or for a sending.
local function due_at(name, host)
  if host.ready == 0 and host.waiting == 0 then
    return -1
  elseif host.places >= host.rule.per or (host.unsent ~= '' and is_paced(host)) then
    return math.huge
  end
  local due = 0
  if host.ready == 0 then
    due = tonumber(call('ZRANGE', WAIT .. name, 0, 0, 'WITHSCORES')[2] or 0)
  end
  return math.max(due, host.closed, host.hop, host.served, gate_of(name), minute_of(host))
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

-- A gate that nobody lifts.
local function pause(name, time)
  call('ZADD', PAUSES, 'GT', now + time, name)
  has_pauses = true
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
