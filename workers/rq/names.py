"""RQ's names in Redis, as RQ itself has them, and the Lua that reads them within the scripts of a job's record."""

from rq.job import Job
from rq.queue import Queue
from rq.registry import StartedJobRegistry

_QUEUE = Queue.redis_queue_namespace_prefix
"""+ queue: a list of the ids that wait."""
_STARTED = StartedJobRegistry.key_template.format("")
"""+ queue: a sorted set of job:execution, by the time at which it counts as lost unless it is renewed."""
_JOB = Job.redis_job_namespace_prefix
"""+ id: a hash."""

LUA = f"""
local function waiting(queue) return redis.call('LLEN', '{_QUEUE}' .. queue) end

local function revoke(queue, id)
  redis.call('LREM', '{_QUEUE}' .. queue, 0, id)
  redis.call('DEL', '{_JOB}' .. id)
end

-- When this execution counts as lost, in seconds since 1970; false when it is over or was given up.
local function lost_at(queue, id, execution)
  local at = redis.call('ZSCORE', '{_STARTED}' .. queue, id .. ':' .. execution)
  return at and tonumber(at)
end
"""
