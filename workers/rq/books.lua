-- RQ's books, kept within the scripts of a job's record. RQ_QUEUE and the other names come from names.py, as RQ has
-- them; what RQ 3 writes and reads itself is listed in docs/notes/rq.md. `stamp` is a time as RQ writes it.

local function rq_line(queue) return RQ_QUEUE .. queue end

-- The hash without which RQ does not know a job: `retries` more runs are allowed after a death. What else is to stand in
-- it follows.
local function rq_write(queue, id, status, stamp, retries, keep_s, ...)
  redis.call('HSET', RQ_JOB .. id, 'data', '["' .. RQ_FUNCTION .. '", null, ["' .. id .. '"], {}]', 'origin', queue,
    'status', status, 'created_at', stamp, 'enqueued_at', stamp, 'timeout', -1, 'result_ttl', 0, 'failure_ttl', keep_s,
    'retries_left', retries, 'enqueue_at_front_on_retry', 1, ...)
end

-- Hand a job over: to the end of the one list from which idle workers take. They sleep until they are told.
local function rq_push(queue, id, stamp, retries, keep_s)
  rq_write(queue, id, 'queued', stamp, retries, keep_s)
  redis.call('SADD', RQ_QUEUES, rq_line(queue))
  redis.call('RPUSH', rq_line(queue), id)
  redis.call('PUBLISH', RQ_BELL .. queue, '')
end

local function rq_forget(queue, id)
  redis.call('LREM', rq_line(queue), 0, id)
  redis.call('DEL', RQ_JOB .. id)
end

-- Enter executions, {id, execution, record} each: they count as lost `ttl` seconds after their last renewal. Answers
-- the runs that are left of each. Of jobs that are `new` RQ knows nothing yet.
local function rq_start(queue, worker, jobs, now, stamp, ttl, keep_s, new)
  local held, until_, started, names, left = RQ_WORKER .. worker .. ':executions', math.floor(now) + ttl, {}, {}, {}
  for k, one in ipairs(jobs) do
    local id, execution, record = unpack(one)
    local of_job, retries = RQ_EXECUTION .. id .. ':' .. execution, not new and redis.call('HGET', RQ_JOB .. id, 'retries_left')
    if retries then
      redis.call('HSET', RQ_JOB .. id, 'status', 'started', 'started_at', stamp, 'last_heartbeat', stamp,
        'worker_name', worker)
    else
      retries = record.retries or 0
      rq_write(queue, id, 'started', stamp, retries, keep_s, 'started_at', stamp, 'last_heartbeat', stamp,
        'worker_name', worker)
    end
    redis.call('HSET', of_job, 'id', execution, 'job_id', id, 'created_at', now, 'last_heartbeat', now,
      'worker_name', worker)
    redis.call('EXPIRE', of_job, ttl)
    redis.call('ZADD', RQ_EXECUTIONS .. id, until_ + 60, execution)
    redis.call('EXPIRE', RQ_EXECUTIONS .. id, ttl + 60)
    started[2 * k - 1], started[2 * k] = until_, id .. ':' .. execution
    names[k], left[k] = id .. ':' .. execution, tonumber(retries) or 0
  end
  redis.call('ZADD', RQ_STARTED .. queue, unpack(started))
  redis.call('SADD', held, unpack(names))
  redis.call('EXPIRE', held, ttl + 60)
  return left
end

-- Close the books on jobs that have an outcome, {id, execution} each. `more` are keys that go with them.
local function rq_end(queue, worker, jobs, more)
  if #jobs == 0 then return end
  local names, keys = {}, {}
  for k, one in ipairs(jobs) do
    local id, execution = unpack(one)
    names[k] = id .. ':' .. execution
    keys[3 * k - 2], keys[3 * k - 1], keys[3 * k] = RQ_EXECUTION .. names[k], RQ_EXECUTIONS .. id, RQ_JOB .. id
  end
  redis.call('ZREM', RQ_STARTED .. queue, unpack(names))
  redis.call('SREM', RQ_WORKER .. worker .. ':executions', unpack(names))
  for _, name in ipairs(more) do keys[#keys + 1] = name end
  redis.call('DEL', unpack(keys))
end

-- Executions of a worker, each as job:execution.
local function rq_held(worker) return redis.call('SMEMBERS', RQ_WORKER .. worker .. ':executions') end

-- Runs that RQ would still make of a job.
local function rq_left(id) return tonumber(redis.call('HGET', RQ_JOB .. id, 'retries_left')) or 0 end

local function rq_state(worker, state, done)
  redis.call('HSET', RQ_WORKER .. worker, 'state', state)
  if done > 0 then redis.call('HINCRBY', RQ_WORKER .. worker, 'successful_job_count', done) end
end

-- When this execution counts as lost, in seconds since 1970; false when it is over or was given up.
local function lost_at(queue, id, execution)
  local at = redis.call('ZSCORE', RQ_STARTED .. queue, id .. ':' .. execution)
  return at and tonumber(at)
end
