-- Handing out: to which worker, from which hosts, how many.

-- Hands requests out to this worker, those of one host behind the other; gives their records.
local function hand_out(tags, names, place)
  local records = {}
  local deadline = string.format('%.0f', now + visibility)
  for first = 1, #tags, 1000 do
    local ids, deadlines, entries = {}, {}, {}
    for n = first, math.min(first + 999, #tags) do
      local id = string.sub(tags[n], 13)
      ids[#ids + 1] = id
      outs[id] = nil
      deadlines[#deadlines + 1] = deadline
      deadlines[#deadlines + 1] = id
      entries[#entries + 1] = id
      entries[#entries + 1] = entry(tags[n], place, 'p', me, names[n])
    end
    for _, record in ipairs(call('HMGET', JOBS, unpack(ids))) do
      -- A record that is missing is one that cannot be read.
      records[#records + 1] = record or ''
    end
    call('ZADD', FLIGHT, unpack(deadlines))
    call('HSET', OUT, unpack(entries))
  end
  holds(me, #tags)
  return records
end

local function lease(max)
  expire()
  if max < 1 or call('HGET', META, 'state') ~= 'running' then
    return {}
  end
  if has_gates then
    call('ZREMRANGEBYSCORE', GATES, '-inf', now)
    has_gates = call('EXISTS', GATES) == 1
  end
  if has_pauses then
    call('ZREMRANGEBYSCORE', PAUSES, '-inf', now)
    has_pauses = call('EXISTS', PAUSES) == 1
  end
  list_touched()
  local open = call('ZRANGEBYSCORE', HOSTS, '-inf', now, 'LIMIT', 0, max)
  local tags, names, wants = {}, {}, {}
  read_hosts(open)
  for n, name in ipairs(open) do
    -- Each a little later than the one before it, so that they take turns the next time as well.
    touch(name).served = now - #open + n
  end
  -- Everyone gets one, or the same share; what some leave is shared anew.
  while #tags < max and #open > 0 do
    local share = math.max(1, math.floor((max - #tags) / #open))
    local still = {}
    for _, name in ipairs(open) do
      local host = touch(name)
      local paced = is_paced(host)
      local room = paced and (host.unsent == '' and 1 or 0) or host.rule.per
      room = math.min(room, host.rule.per - host.places)
      if math.max(host.closed, host.hop, gate_of(name), minute_of(host)) > now then
        -- It was listed without a look at its clock.
        room = 0
      end
      local take = math.min(share, room, max - #tags)
      if take > 0 then
        ripen(name, now)
        local popped = call('ZPOPMIN', READY .. name, take)
        local got = #popped / 2
        -- What was expected and is not there never was.
        host.ready = got < take and 0 or host.ready - got
        for n = 1, got do
          tags[#tags + 1] = popped[2 * n - 1]
          names[#names + 1] = name
          wants[#wants + 1] = paced and 1 or 0
        end
        if got > 0 then
          host.places = host.places + got
          if paced then
            host.unsent = string.sub(popped[1], 13)
          end
        end
        if got == take and room > take then
          still[#still + 1] = name
        end
      end
    end
    open = still
  end
  local records = hand_out(tags, names, 'p')
  local given = {}
  for n = 1, #tags do
    given[#given + 1] = string.sub(tags[n], 13)
    given[#given + 1] = names[n]
    given[#given + 1] = records[n]
    given[#given + 1] = wants[n]
  end
  return given
end

-- The next request of one host at a time that the caller gives; it takes no place.
local function pull(name, time)
  write_outs()
  ripen(name, time)
  local host = touch(name)
  local popped = call('ZPOPMIN', READY .. name)
  if popped[1] then
    host.ready = math.max(0, host.ready - 1)
    return { 2, hand_out({ popped[1] }, { name }, '-')[1] }
  end
  local first = call('ZRANGE', WAIT .. name, 0, 0, 'WITHSCORES')
  if first[2] then
    return { 1, tonumber(first[2]) }
  end
  return { 0 }
end

-- A place for a request that is out: {2, from when, tell when sent}, {1, ask again in} or {0}.
local function place(id, what)
  local out = mine(id)
  if not out then
    return { 0 }
  end
  if free_place(id, out) then
    keep(id)
  end
  local host = touch(out.host)
  local shut = gate_of(out.host)
  local paced = what == 'hop' and is_paced(host)
  local opens = math.max(shut, what == 'hop' and math.max(host.closed, minute_of(host)) or 0) - now
  if host.places >= host.rule.per or (paced and host.unsent ~= '') then
    if what == 'hop' then
      host.hop = now + 1000000
    end
    return { 1, 20000 }
  elseif opens > 0 and (what ~= 'hop' or opens > visibility / 2) then
    return { 1, math.min(opens, 1000000) }
  end
  host.places = host.places + 1
  host.hop = 0
  if paced then
    host.unsent = id
  end
  if what ~= 'hop' then
    -- Its sending is not told, and it waits for nothing.
    count_minute(host, now)
  end
  out.place = 'p'
  keep(id)
  return { 2, math.max(0, opens), paced and 1 or 0 }
end
