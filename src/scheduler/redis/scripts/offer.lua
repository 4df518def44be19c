-- Offers: what was seen or queued before is dropped, the rest is queued.

-- Whether this worker may take in requests of `start` or `idle`.
local function is_claimed(origin)
  return call('HGET', META, origin .. '_by') == me
end

local function advance(origin, cursor)
  if cursor > tonumber(call('HGET', META, origin .. '_cursor') or 0) then
    call('HSET', META, origin .. '_cursor', cursor)
  end
end

local function offer(origin, cursor, size)
  local stop = at + 7 * size
  local is_run = origin == 'start' or origin == 'idle'
  if is_full or (is_run and not is_claimed(origin)) then
    at = stop
    return is_full and 'full' or 'unclaimed'
  end
  write_outs()
  local stored, duplicates, repeated, kept = 0, 0, 0, {}
  local age = next_age(size)
  local parents, children, queued = {}, {}, {}
  -- What was seen before this offer, asked for at once.
  local seen, fresh = {}, {}
  for first = at, stop - 7, 7 * 3000 do
    local keys = {}
    for n = first, math.min(first + 7 * 2999, stop - 7), 7 do
      keys[#keys + 1] = ARGV[n + 1]
    end
    for n, is_seen in ipairs(call('SMISMEMBER', SEEN, unpack(keys))) do
      seen[keys[n]] = is_seen == 1
    end
  end
  while at < stop do
    local key, flags, parent = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
    local id, host, rank, record = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
    at = at + 7
    if parent ~= '' and parents[parent] == nil then
      -- A parent that is not this worker's any more is run again by another: then its children are offered again.
      parents[parent] = {
        is_out = out_of(parent) ~= nil,
        is_lost = origin == 'page' and not mine(parent),
        has = call('EXISTS', KIDS .. parent) == 1,
        here = {},
      }
    end
    local of = parents[parent]
    local dropped = true
    if of and (of.is_lost or of.here[id] or (of.has and call('SISMEMBER', KIDS .. parent, id) == 1)) then
      repeated = repeated + 1
    elseif seen[key] and flags % 2 == 0 then
      duplicates = duplicates + 1
    elseif call('HSETNX', JOBS, id, record) == 0 then
      repeated = repeated + 1
    else
      dropped = false
      stored = stored + 1
      if not seen[key] then
        seen[key] = true
        fresh[#fresh + 1] = key
      end
      local line = queued[host]
      if not line then
        line = {}
        queued[host] = line
      end
      line[#line + 1] = 0
      line[#line + 1] = tag_of(rank, age, id)
      age = age + 1
      if of and of.is_out then
        of.here[id] = true
        children[parent] = children[parent] or {}
        table.insert(children[parent], id)
      end
    end
    if dropped and flags >= 2 then
      kept[#kept + 1] = id
    end
  end
  many('SADD', SEEN, fresh, 1)
  local names = {}
  for name in pairs(queued) do
    names[#names + 1] = name
  end
  read_hosts(names)
  for name, line in pairs(queued) do
    many('ZADD', READY .. name, line, 2)
    local host = touch(name)
    host.ready = host.ready + #line / 2
  end
  for parent, ids in pairs(children) do
    many('SADD', KIDS .. parent, ids, 1)
  end
  if is_run then
    advance(origin, cursor)
  end
  books.enqueued = books.enqueued + stored
  books.pending = books.pending + stored
  return { stored, duplicates, repeated, kept }
end
