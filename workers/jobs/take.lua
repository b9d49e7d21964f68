-- queue, worker, id that it has from RQ's list or '', at most so many, now, stamp, seconds until an execution counts as
-- lost, first part of the executions' ids, device name, seconds for which a failed job is listed, until when the worker
-- waits if there is nothing, most workers of one owner. Answers {id, execution, runs left, record (flat), arrays or ''} of each job.
local queue, worker, got, most, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local stamp, ttl, token, device, keep_s = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]
local taken = {}

-- Mark the job running under an execution of its own, unless it is not there any more or another that lives has it.
local function start(id)
  local seen = redis.call('HMGET', key(id), 'state', 'execution', 'retries')
  if (seen[1] ~= 'queued' and seen[1] ~= 'running') or (seen[1] == 'running' and alive(id, seen[2], now)) then
    if seen[1] ~= 'running' then redis.call('DEL', RQ_JOB .. id) end
    return false
  end
  local execution = token .. '-' .. (#taken + 1)
  if redis.call('EXISTS', RQ_JOB .. id) == 0 then rq_write(queue, id, 'queued', stamp, seen[3] or 0, keep_s) end
  local left = rq_start(queue, id, execution, worker, now, stamp, ttl)
  redis.call('HSETNX', key(id), 'started_at', now)
  redis.call('HSET', key(id), 'state', 'running', 'execution', execution, 'begun_at', now, 'ran_on', device)
  redis.call('HINCRBY', key(id), 'attempt', 1)
  tell_state(id)
  taken[#taken + 1] = {id, execution, left, redis.call('HGETALL', key(id)), redis.call('GET', 'allot:arrays:' .. id) or ''}
  return true
end

local function first()
  if got ~= '' then
    redis.call('LREM', rq_line(queue) .. ':intermediate', 1, got)
    if start(got) then
      hold_worker(got)
      return got
    end
  end
  while true do
    local id = redis.call('LPOP', rq_line(queue)) or next_in_line(queue)
    if not id then return false end
    if start(id) then
      hold_worker(id)
      return id
    end
  end
end

-- The form of a job that may have company.
local function form_of(id)
  local seen = redis.call('HMGET', key(id), 'form', 'alone')
  return seen[1] and seen[1] ~= '-' and not seen[2] and seen[1]
end

local id = first()
if not id then
  redis.call('ZREMRANGEBYSCORE', 'allot:idle:' .. queue, '-inf', '(' .. now)
  redis.call('ZADD', 'allot:idle:' .. queue, ARGV[11], worker)
  rq_state(worker, 'idle', 0)
  return taken
end
redis.call('ZREM', 'allot:idle:' .. queue, worker)
rq_state(worker, 'busy', 0)
local form = most > 1 and form_of(id)
if form then
  for _, other in ipairs(redis.call('LRANGE', rq_line(queue), 0, 63)) do
    if #taken < most and form_of(other) == form then
      redis.call('LREM', rq_line(queue), 1, other)
      start(other)
    end
  end
  for _, other in ipairs(fellows_in_line(queue, form, most - #taken)) do start(other) end
  if #taken > 1 then
    for _, one in ipairs(taken) do redis.call('HSET', key(one[1]), 'among', #taken) end
  end
end
return taken
