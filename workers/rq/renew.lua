-- queue, id, execution, worker, now, stamp, seconds until the execution counts as lost, seconds until the worker does:
-- a worker still has a job. An execution that was given up meanwhile stays so.
local queue, id, execution, worker, now, stamp, ttl, life = unpack(ARGV)
local one, of_job = id .. ':' .. execution, RQ_EXECUTION .. id .. ':' .. execution
redis.call('EXPIRE', RQ_WORKER .. worker, life)
redis.call('EXPIRE', RQ_WORKER .. worker .. ':executions', life)
redis.call('HSET', RQ_WORKER .. worker, 'last_heartbeat', stamp)
if not redis.call('ZSCORE', RQ_STARTED .. queue, one) then return 0 end
redis.call('ZADD', RQ_STARTED .. queue, 'XX', math.floor(now) + ttl, one)
redis.call('ZADD', RQ_EXECUTIONS .. id, 'XX', math.floor(now) + ttl + 60, execution)
redis.call('EXPIRE', RQ_EXECUTIONS .. id, ttl + 60)
if redis.call('EXISTS', of_job) == 1 then redis.call('HSET', of_job, 'last_heartbeat', now) end
redis.call('EXPIRE', of_job, ttl)
if redis.call('EXISTS', RQ_JOB .. id) == 1 then redis.call('HSET', RQ_JOB .. id, 'last_heartbeat', stamp) end
return 1
