-- id, execution, now, device name
local id, execution, now = ARGV[1], ARGV[2], ARGV[3]
local seen = redis.call('HMGET', key(id), 'state', 'execution')
if not seen[1] then return 'unknown' end
if seen[1] ~= 'queued' and seen[1] ~= 'running' then return 'ended' end
if seen[1] == 'running' and seen[2] == execution then return 'begun' end  -- asked again after a lost answer
-- One that RQ has given up must not take the job back, and none may take it from one that lives.
if not alive(id, execution, now) or alive(id, seen[2], now) then return 'fenced' end
redis.call('HSETNX', key(id), 'started_at', now)
redis.call('HSET', key(id), 'state', 'running', 'execution', execution, 'begun_at', now, 'ran_on', ARGV[4])
redis.call('HINCRBY', key(id), 'attempt', 1)
tell_state(id)
return 'begun'
