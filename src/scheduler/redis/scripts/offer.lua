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
  if is_full or (origin ~= '' and not is_claimed(origin)) then
    at = stop
    return is_full and 'full' or 'unclaimed'
  end
  local stored, duplicates, repeated, kept = 0, 0, 0, {}
  local age = next_age(size)
  local parents, children, queued = {}, {}, {}
  while at < stop do
    local key, flags, parent = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
    local id, host, rank, record = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
    at = at + 7
    if parent ~= '' and parents[parent] == nil then
      parents[parent] = { is_out = call('HEXISTS', OUT, parent) == 1, has = call('EXISTS', KIDS .. parent) == 1 }
    end
    local of = parents[parent]
    local dropped = true
    if of and of.has and call('SISMEMBER', KIDS .. parent, id) == 1 then
      repeated = repeated + 1
    elseif call('SADD', SEEN, key) == 0 and flags % 2 == 0 then
      duplicates = duplicates + 1
    elseif call('HSETNX', JOBS, id, record) == 0 then
      repeated = repeated + 1
    else
      dropped = false
      stored = stored + 1
      local line = queued[host]
      if not line then
        line = {}
        queued[host] = line
      end
      line[#line + 1] = 0
      line[#line + 1] = tag_of(rank, age, id)
      age = age + 1
      if of and of.is_out then
        children[parent] = children[parent] or {}
        table.insert(children[parent], id)
      end
    end
    if dropped and flags >= 2 then
      kept[#kept + 1] = id
    end
  end
  for host, line in pairs(queued) do
    many('ZADD', READY .. host, line, 2)
    touch(host)
  end
  for parent, ids in pairs(children) do
    many('SADD', KIDS .. parent, ids, 1)
  end
  if origin ~= '' then
    advance(origin, cursor)
  end
  books.enqueued = books.enqueued + stored
  books.pending = books.pending + stored
  return { stored, duplicates, repeated, kept }
end
