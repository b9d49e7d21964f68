-- queue, worker, at most so many (0: only what it has not heard of), now, stamp, seconds until an execution counts as lost,
-- first part of the executions' ids, device name, seconds for which a failed job is listed, until when the worker waits
-- if there is nothing, most workers of one owner. Answers {id, execution, runs left, record (flat), arrays or ''} of
-- each job. A worker asks again with the same first part where the answer was lost, and is given the same jobs.
local queue, worker, most, now, stamp = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local ttl, token, device, keep_s = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local taken, claimed = {}, {}
local SOON_S = 0.25

-- Claim the job for an execution of its own, unless it is not there any more or another that lives has it.
local function claim(id)
  if claimed[id] then return false end
  local record = record_of(id)
  if record.state ~= 'queued' and record.state ~= 'running' then
    if not next(record) and redis.call('EXISTS', key(id)) == 1 then set_aside(id) end
    redis.call('DEL', RQ_JOB .. id)
    return false
  end
  if not sound(record) then
    set_aside(id)
    return false
  end
  if record.state == 'running' and alive(id, record.execution, now) then return false end
  claimed[id] = true
  taken[#taken + 1] = {id, token .. '-' .. (#taken + 1), record}
  return record
end

-- Those of which somebody else may know by now. Of a new job whose submitter waits for the answer nobody has been told,
-- so that each message about it would wake the submitter for nothing.
local function heard_of()
  local some = {}
  for _, one in ipairs(taken) do
    local record = one[3]
    local waited_for = record.reply and record.reply ~= '' and tonumber(now) - tonumber(record.created_at) < SOON_S
    if not waited_for then some[#some + 1] = one end
  end
  return some
end

local function first()
  while true do
    local id = redis.call('LPOP', rq_line(queue)) or next_in_line(queue)
    if not id then return false end
    local record = claim(id)
    if record then
      hold_worker(id, record.owner)
      return record
    end
  end
end

-- The form of a job that may have company.
local function form_of(form, alone) return form and form ~= '-' and not alone and form end

-- What a script has handed this worker straight, where it did not hear of that: the message may have been lost. It is told
-- once; who was told is noted behind the id.
local function handed()
  local id, whom = string.match(redis.call('GET', handed_key(worker)) or '', '^(%S+) ?(.*)$')
  if not id or (whom ~= '' and whom ~= token) or not mine(id, straight_execution(id)) then return {} end
  redis.call('SET', handed_key(worker), id .. ' ' .. token, 'KEEPTTL')
  return {order_of(id, straight_execution(id), rq_left(id), record_of(id))}
end

-- What this worker took as it asked before.
local function taken_before()
  local found = {}
  for _, name in ipairs(rq_held(worker)) do
    local id, execution = string.match(name, '^(.*):(.*)$')
    if string.sub(execution, 1, #token + 1) == token .. '-' and mine(id, execution) then
      found[#found + 1] = order_of(id, execution, rq_left(id), record_of(id))
    end
  end
  return found
end

for _, unheard in ipairs({handed, taken_before}) do
  local found = unheard()
  if #found > 0 then return found end
end
if most == 0 then return taken end
local record = first()
if not record then
  redis.call('ZREMRANGEBYSCORE', 'allot:idle:' .. queue, '-inf', '(' .. now)
  redis.call('ZADD', 'allot:idle:' .. queue, ARGV[10], worker)
  rq_state(worker, 'idle', 0)
  return taken
end
redis.call('ZREM', 'allot:idle:' .. queue, worker)
rq_state(worker, 'busy', 0)
local form = most > 1 and form_of(record.form, record.alone)
if form then
  for _, other in ipairs(redis.call('LRANGE', rq_line(queue), 0, 63)) do
    if #taken < most and form_of(unpack(redis.call('HMGET', key(other), 'form', 'alone'))) == form then
      redis.call('LREM', rq_line(queue), 1, other)
      claim(other)
    end
  end
  for _, other in ipairs(fellows_in_line(queue, form, most - #taken)) do claim(other) end
end
local told = start_all(queue, worker, device, taken, now, stamp, ttl, keep_s)
tell_all(heard_of())
return told
