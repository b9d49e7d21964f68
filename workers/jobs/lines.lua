-- Fair feeding: who is served next. Keys, of each kind of worker (`queue`):
--
--   allot:line:{queue}:{form}:{owner}  zset  ids by priority and arrival; form '-' is that of jobs with no company
--   allot:forms:{queue}:{owner}        zset  the owner's lines by the score of their first id
--   allot:fair:{queue}                 zset  owners with jobs that wait, by the service that they have had
--   allot:had:{queue}                  hash  the same of owners who have none waiting, until the others have caught up
--   allot:clock:{queue}                      the service at which the last job was taken
--   allot:backlog:{queue}              hash  jobs (n:owner) and estimated seconds (s:owner) that wait, and all jobs (n)
--   allot:idle:{queue}                 zset  workers that wait for a job, by when that has to be said again
--   allot:weights                      hash  owner -> weight, 1 unless it is set; allot:arrivals counts them
--
-- Service is seconds over weight: the estimate at first, and what the job really took once it has ended (quotas.lua).
-- Whoever has had least is next (start-time fair queueing: a deficit round robin whose quantum is one job). Who comes
-- back starts where the others are, so that nobody saves service up.

local PRIORITY = 1099511627776  -- 2^40 arrivals

local function line_key(queue, form, owner) return 'allot:line:' .. queue .. ':' .. form .. ':' .. owner end
local function forms_key(queue, owner) return 'allot:forms:' .. queue .. ':' .. owner end

local function waiting(queue)
  return redis.call('LLEN', rq_line(queue)) + tonumber(redis.call('HGET', 'allot:backlog:' .. queue, 'n') or 0)
end

-- Jobs on RQ's list; all that wait behind it; of those the owner's, and their seconds.
local function backlog_of(queue, owner)
  local told = redis.call('HMGET', 'allot:backlog:' .. queue, 'n', 'n:' .. owner, 's:' .. owner)
  return redis.call('LLEN', rq_line(queue)), tonumber(told[1] or 0), tonumber(told[2] or 0), tonumber(told[3] or 0)
end

local function clock_of(queue) return tonumber(redis.call('GET', 'allot:clock:' .. queue) or 0) end

local function join_line(queue, id, owner, form, priority, seconds)
  local fair, backlog = 'allot:fair:' .. queue, 'allot:backlog:' .. queue
  local score = redis.call('INCR', 'allot:arrivals') - priority * PRIORITY
  redis.call('ZADD', line_key(queue, form, owner), score, id)
  redis.call('ZADD', forms_key(queue, owner), 'LT', score, form)
  if not redis.call('ZSCORE', fair, owner) then
    local had = tonumber(redis.call('HGET', 'allot:had:' .. queue, owner) or 0)
    redis.call('ZADD', fair, string.format('%.17g', math.max(had, clock_of(queue))), owner)
    redis.call('HDEL', 'allot:had:' .. queue, owner)
  end
  redis.call('HINCRBY', backlog, 'n', 1)
  redis.call('HINCRBY', backlog, 'n:' .. owner, 1)
  redis.call('HINCRBYFLOAT', backlog, 's:' .. owner, seconds)
end

-- `count` jobs have left a line of the owner's, for service (`served`) or not; the books of the lines follow.
local function left_line(queue, owner, form, count, seconds, served)
  local fair, backlog, forms = 'allot:fair:' .. queue, 'allot:backlog:' .. queue, forms_key(queue, owner)
  if served then
    local had = tonumber(redis.call('ZSCORE', fair, owner))
    if had > clock_of(queue) then redis.call('SET', 'allot:clock:' .. queue, string.format('%.17g', had)) end
    redis.call('ZADD', fair, string.format('%.17g', had + seconds / weight_of(owner)), owner)
  end
  redis.call('HINCRBY', backlog, 'n', -count)
  redis.call('HINCRBY', backlog, 'n:' .. owner, -count)
  redis.call('HINCRBYFLOAT', backlog, 's:' .. owner, -seconds)
  local first = redis.call('ZRANGE', line_key(queue, form, owner), 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZADD', forms, first[2], form)
    return
  end
  redis.call('ZREM', forms, form)
  if redis.call('EXISTS', forms) == 1 then return end
  redis.call('HSET', 'allot:had:' .. queue, owner, redis.call('ZSCORE', fair, owner))
  redis.call('ZREM', fair, owner)
  redis.call('HDEL', backlog, 'n:' .. owner, 's:' .. owner)
end

local function seconds_of(id)
  local seconds = redis.pcall('HGET', 'allot:job:' .. id, 'seconds')
  return type(seconds) == 'string' and tonumber(seconds) or 0
end

-- Take a job out of its line unserved; true when it was in one.
local function leave_line(queue, id)
  local seen = redis.call('HMGET', 'allot:job:' .. id, 'owner', 'form')
  if not seen[2] or redis.call('ZREM', line_key(queue, seen[2], seen[1]), id) == 0 then return false end
  left_line(queue, seen[1], seen[2], 1, seconds_of(id), false)
  return true
end

-- The owner whose turn it is, of those whose jobs hold fewer workers than they may.
local function owner_in_turn(queue)
  local place = 0
  while true do
    local owner = redis.call('ZRANGE', 'allot:fair:' .. queue, place, place)[1]
    if not owner or not holds_all(owner) then return owner end
    place = place + 1
  end
end

-- The job whose turn it is, out of its line; false when nobody waits who may have a worker.
local function next_in_line(queue)
  local owner = owner_in_turn(queue)
  if not owner then return false end
  local form = redis.call('ZRANGE', forms_key(queue, owner), 0, 0)[1]
  local id = redis.call('ZPOPMIN', line_key(queue, form, owner))[1]
  left_line(queue, owner, form, 1, seconds_of(id), true)
  return id
end

-- Up to `most` more jobs of one form, evenly from all owners who have some, each charged for their own.
local function fellows_in_line(queue, form, most)
  local found, from = {}, {}
  for _, owner in ipairs(redis.call('ZRANGE', 'allot:fair:' .. queue, 0, 63)) do
    local count = redis.call('ZCARD', line_key(queue, form, owner))
    if count > 0 then from[#from + 1] = {owner, count} end
  end
  table.sort(from, function(a, b) return a[2] < b[2] end)
  for k, one in ipairs(from) do
    local share = math.min(one[2], math.floor((most - #found) / (#from - k + 1)))
    if share > 0 then
      local taken, seconds = redis.call('ZPOPMIN', line_key(queue, form, one[1]), share), 0
      for i = 1, #taken, 2 do
        found[#found + 1] = taken[i]
        seconds = seconds + seconds_of(taken[i])
      end
      left_line(queue, one[1], form, share, seconds, true)
    end
  end
  return found
end

-- How many more jobs RQ's list may have: as many as workers wait.
local function places(queue, now)
  return redis.call('ZCOUNT', 'allot:idle:' .. queue, now, '+inf') - redis.call('LLEN', rq_line(queue))
end

-- The workers that wait, where a new job of the owner's may go to one of them past all lines: no other job waits, and
-- more of them do than RQ's list, which has `ready` jobs, has something for. False where it may not.
local function past_lines(queue, owner, now, ready)
  if redis.call('EXISTS', 'allot:fair:' .. queue) == 1 then return false end
  local idle = redis.call('ZREVRANGEBYSCORE', 'allot:idle:' .. queue, '+inf', now, 'LIMIT', 0, ready + 8)
  return #idle > ready and not holds_all(owner) and idle
end

-- The books of such a job are as if it had stood in a line: its owner begins where the others are, and is charged.
local function charge_past_lines(queue, owner, seconds)
  local books, clock = 'allot:had:' .. queue, clock_of(queue)
  local had = tonumber(redis.call('HGET', books, owner) or 0)
  if had > clock then redis.call('SET', 'allot:clock:' .. queue, string.format('%.17g', had)) end
  had = math.max(had, clock) + seconds / weight_of(owner)
  redis.call('HSET', books, owner, string.format('%.17g', had))
end

-- Give RQ's list what the workers that wait can take at once, and no more.
local function feed(queue, now, stamp, keep_s)
  for _ = 1, places(queue, now) do
    local id = next_in_line(queue)
    if not id then return end
    local seen = redis.call('HMGET', 'allot:job:' .. id, 'retries', 'owner')
    rq_push(queue, id, stamp, seen[1] or 0, keep_s)
    hold_worker(id, seen[2])
  end
end

-- 1 for the job that is taken next; other owners' jobs count as many as have their turn before it.
local function position(queue, id)
  local ready = redis.call('LPOS', rq_line(queue), id)
  if ready then return ready + 1 end
  local seen = redis.call('HMGET', 'allot:job:' .. id, 'owner', 'form')
  local owner = seen[1]
  local score = seen[2] and redis.call('ZSCORE', line_key(queue, seen[2], owner), id)
  if not score then return false end
  local backlog, own = redis.call('HGETALL', 'allot:backlog:' .. queue), 0
  local told = {}
  for i = 1, #backlog, 2 do told[backlog[i]] = tonumber(backlog[i + 1]) end
  for _, form in ipairs(redis.call('ZRANGE', forms_key(queue, owner), 0, -1)) do
    own = own + redis.call('ZCOUNT', line_key(queue, form, owner), '-inf', '(' .. score)
  end
  local before = own * told['s:' .. owner] / told['n:' .. owner] / weight_of(owner)
    + tonumber(redis.call('ZSCORE', 'allot:fair:' .. queue, owner))
  local place = redis.call('LLEN', rq_line(queue)) + own + 1
  local others = redis.call('ZRANGE', 'allot:fair:' .. queue, 0, -1, 'WITHSCORES')
  for i = 1, #others, 2 do
    local other = others[i]
    if other ~= owner then
      local each = math.max(told['s:' .. other] / told['n:' .. other], 1e-9) / weight_of(other)
      local ahead = math.ceil((before - tonumber(others[i + 1])) / each)
      place = place + math.max(0, math.min(told['n:' .. other], ahead))
    end
  end
  return place
end
