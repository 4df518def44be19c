-- Does the operations of one batch of one worker, all of them in one step.
-- KEYS[1] the job's meta hash. ARGV: worker, its token, the hosts with rules of their own, the batch's number, visibility,
-- places, delay and requests per minute of a host, the throttle (on or off, start, longest, millionths of its target), whether
-- the batch may go on after some that the server lost, the number of requests it is about and their ids, then the
-- operations: a letter and its arguments each. Times are microseconds: a Lua number keeps them exactly. No number is ever
-- joined to a text, which would shorten it.

local call = redis.call
local META = KEYS[1]
local prefix = string.sub(META, 1, -5)
local me, token, number = ARGV[1], ARGV[2], ARGV[4]
local visibility, per_host, delay, per_minute = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local throttle = {
  on = ARGV[9] == '1', start = tonumber(ARGV[10]), max = tonumber(ARGV[11]), target = tonumber(ARGV[12]) / 1000000,
}

local JOBS, SEEN, OUT, FLIGHT = prefix .. 'jobs', prefix .. 'seen', prefix .. 'out', prefix .. 'flight'
local HOSTS, GATES, PAUSES = prefix .. 'hosts', prefix .. 'gates', prefix .. 'pauses'
local READY, WAIT, HOST, KIDS = prefix .. 'q:', prefix .. 'w:', prefix .. 'h:', prefix .. 'k:'
local MINUTE, THROTTLE = prefix .. 'm:', prefix .. 't:'
local DEAD, ASIDE, REASONS = prefix .. 'dead', prefix .. 'aside', prefix .. 'reasons'
local RETURNS = prefix .. 'returns'
local BOOKS, STATES, BEATS, WORKER = prefix .. 'books', prefix .. 'states', prefix .. 'beats', prefix .. 'worker:'
local SELF = WORKER .. me

local last = call('HMGET', SELF, 'token', 'number', 'reply')
if not last[1] then
  return 'gone'
elseif last[1] ~= token then
  return 'taken'
elseif last[2] == number then
  -- Done before, and the answer was lost.
  return cmsgpack.unpack(last[3])
end
-- Batches the server has answered and lost again (it was restarted from what it had written): what they ended is run again.
local missed = tonumber(number) - tonumber(last[2]) - 1
if missed < 0 or (missed > 0 and ARGV[13] ~= '1') then
  return 'gone'
end

-- At maxmemory the first write that needs memory fails. Then offers are refused, and the rest, which takes more out
-- than in, goes on: after a write that needs none, no later one is refused.
local probe = redis.pcall('HSET', META, 'room', 1)
local is_full = type(probe) == 'table' and probe.err ~= nil
if is_full then
  if not string.find(probe.err, 'OOM', 1, true) then
    return probe
  end
  call('HDEL', META, 'nothing')
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local at = 13
local function text()
  at = at + 1
  return ARGV[at]
end
local function count()
  at = at + 1
  return tonumber(ARGV[at])
end

-- Changes of counters, written at the end.
local books = { enqueued = 0, handled = 0, failed = 0, dropped = 0, set_aside = 0, pending = 0 }
local held = {}
local returned, given_up = 0, 0

local function holds(worker, change)
  held[worker] = (held[worker] or 0) + change
end

local function is_alive(worker)
  local beat = call('ZSCORE', BEATS, worker)
  return beat and tonumber(beat) > now - visibility
end

-- Calls a command with many arguments in portions the Lua stack has room for; `width` belong together.
local function many(command, key, arguments, width)
  local portion = 3000 * width
  for first = 1, #arguments, portion do
    call(command, key, unpack(arguments, first, math.min(first + portion - 1, #arguments)))
  end
end
