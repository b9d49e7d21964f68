-- What the scripts of a job's record have in common. The keys are drawn in workers/jobs/job.py.

local function key(id) return 'allot:job:' .. id end

local function tell(id, kind, data)
  local version = redis.call('HINCRBY', key(id), 'version', 1)
  redis.call('XADD', 'allot:events:' .. id, 'MAXLEN', '~', 2000, '*', 'kind', kind, 'data', data)
  redis.call('PUBLISH', 'allot:told', id .. ' ' .. redis.call('HGET', key(id), 'state') .. ' ' .. version)
end

local function tell_state(id)
  local seen = redis.call('HMGET', key(id), 'state', 'attempt', 'termination')
  local data = {state = seen[1], attempt = tonumber(seen[2])}
  if seen[3] and seen[3] ~= '' then data.termination = seen[3] end
  tell(id, 'state', cjson.encode(data))
end

local function count(id, what)
  redis.call('HINCRBY', 'allot:counts', what .. ':' .. redis.call('HGET', key(id), 'solver'), 1)
end

local function unqueue(id)
  revoke(redis.call('HGET', key(id), 'queue'), id)
  redis.call('ZREM', 'allot:unsent', id)
end

local function hold(id, digests)
  for _, digest in ipairs(digests) do redis.call('SADD', 'allot:refs:' .. digest, id) end
end

-- Forget the job and let go of its blobs; the sweep looks at them from now on.
local function purge(id, now)
  local seen = redis.call('HMGET', key(id), 'owner', 'digests')
  if seen[2] then
    for _, digest in ipairs(cjson.decode(seen[2])) do
      redis.call('SREM', 'allot:refs:' .. digest, id)
      redis.call('ZADD', 'allot:blobs', 'LT', now, digest)
    end
  end
  if seen[1] then redis.call('ZREM', 'allot:jobs:' .. seen[1], id) end
  redis.call('ZREM', 'allot:expiry', id)
  redis.call('ZREM', 'allot:active', id)
  redis.call('DEL', key(id), 'allot:result:' .. id, 'allot:events:' .. id)
  redis.call('PUBLISH', 'allot:told', id .. ' gone 0')
end

local function finish(id, state, now)
  local ttl = tonumber(redis.call('HGET', key(id), 'result_ttl_s'))
  redis.call('HSET', key(id), 'state', state, 'ended_at', now, 'expires_at', now + ttl)
  redis.call('ZADD', 'allot:expiry', now + ttl, id)
  redis.call('ZREM', 'allot:active', id)
  count(id, state)
  observe(id)
  tell_state(id)
  if redis.call('HGET', key(id), 'discard') then purge(id, now) end
end

-- An execution is alive while its worker renews it.
local function alive(id, execution, now)
  if not execution or execution == '' then return false end
  local at = lost_at(redis.call('HGET', key(id), 'queue'), id, execution)
  return at and at > tonumber(now)
end

local function mine(id, execution)
  local seen = redis.call('HMGET', key(id), 'state', 'execution')
  return seen[1] == 'running' and seen[2] == execution
end
