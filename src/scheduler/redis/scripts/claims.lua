-- Who runs start() and idle, and when the job is over. A claim holds as long as its worker shows signs of life.

local is_leaving = false

local function claimant(what)
  local by = call('HGET', META, what .. '_by')
  if by and by ~= '' and (by == me or is_alive(by)) then
    return by
  end
  return nil
end

local function is_started()
  return call('HGET', META, 'start_done') == '1'
end

local function pending()
  return tonumber(call('HGET', BOOKS, 'pending') or 0) + books.pending
end

local function claim(what)
  local by = claimant(what)
  if by and by ~= me then
    return { 1 }
  end
  local is_time = not is_started()
  if what == 'idle' then
    is_time = is_started() and pending() == 0 and call('HGET', META, 'state') == 'running'
  end
  if not is_time then
    return { 0 }
  end
  call('HSET', META, what .. '_by', me)
  return { 2, tonumber(call('HGET', META, what .. '_cursor') or 0) }
end

local function release(what)
  if call('HGET', META, what .. '_by') == me then
    call('HDEL', META, what .. '_by')
    return 1
  end
  return 0
end

local function finish(what)
  local done = release(what)
  if done == 1 and what == 'start' then
    call('HSET', META, 'start_done', 1)
  end
  return done
end

local function conclude()
  local by = claimant('idle')
  if pending() > 0 or not is_started() or (by and by ~= me) then
    return 0
  end
  call('HDEL', META, 'idle_by')
  call('HSET', META, 'state', 'finished')
  return 1
end

local function leave()
  release('start')
  release('idle')
  is_leaving = true
  return recover(false)
end
