-- What the scripts of a job's record have in common. The keys are drawn in workers/jobs/job.py.

local function key(id) return 'allot:job:' .. id end
local function events_key(id) return 'allot:events:' .. id end

local function event(id, at, kind, data)
  redis.call('XADD', events_key(id), at, 'kind', kind, 'data', data)
end

-- Somebody may wait for this job, or follow all of them. `seen`: its state and version.
local function publish(id, state, version)
  redis.call('PUBLISH', 'allot:told', id .. ' ' .. state .. ' ' .. version)
  redis.call('PUBLISH', 'allot:told:' .. id, version)
end

-- Something has changed. Events are kept for those jobs alone that have a stream, see open_stream.
local function tell(id, kind, data)
  local version = redis.call('HINCRBY', key(id), 'version', 1)
  if redis.call('EXISTS', events_key(id)) == 1 then event(id, '*', kind, data) end
  publish(id, redis.call('HGET', key(id), 'state'), version)
end

local function tell_state(id)
  local version = redis.call('HINCRBY', key(id), 'version', 1)
  local seen = redis.call('HMGET', key(id), 'state', 'attempt', 'termination', 'verified')
  if redis.call('EXISTS', events_key(id)) == 1 then
    local data = {state = seen[1], attempt = tonumber(seen[2])}
    if seen[3] and seen[3] ~= '' then data.termination = seen[3] end
    if seen[4] == 'true' or seen[4] == 'false' then data.verified = seen[4] == 'true' end
    event(id, '*', 'state', cjson.encode(data))
  end
  publish(id, seen[1], version)
end

-- A job gets a stream of events when it has run for a while, or something happened to it that its record does not
-- tell. The stream then begins with what went before; queue.py gives the same events the same ids without one.
local function open_stream(id)
  if redis.call('EXISTS', events_key(id)) == 1 then return end
  local seen = redis.call('HMGET', key(id), 'created_at', 'begun_at', 'attempt')
  local made = math.floor(1000 * tonumber(seen[1]))
  event(id, string.format('%.0f-0', made), 'state', '{"state":"queued","attempt":0}')
  if seen[2] then
    local begun = math.max(made, math.floor(1000 * tonumber(seen[2])))
    event(id, string.format('%.0f-1', begun), 'state', '{"state":"running","attempt":' .. seen[3] .. '}')
  end
end

local function count(id, what)
  redis.call('HINCRBY', 'allot:counts', what .. ':' .. redis.call('HGET', key(id), 'solver'), 1)
end

local function unqueue(id)
  local queue = redis.call('HGET', key(id), 'queue')
  if not leave_line(queue, id) then rq_forget(queue, id) end
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
  redis.call('DEL', key(id), 'allot:arrays:' .. id, 'allot:result:' .. id, events_key(id), 'allot:shares:' .. id)
  publish(id, 'gone', 0)
end

local function finish(id, state, now)
  local ttl = tonumber(redis.call('HGET', key(id), 'result_ttl_s'))
  redis.call('HSET', key(id), 'state', state, 'ended_at', now, 'expires_at', now + ttl)
  redis.call('ZADD', 'allot:expiry', now + ttl, id)
  redis.call('ZREM', 'allot:active', id)
  redis.call('DEL', 'allot:arrays:' .. id)
  count(id, state)
  observe(id)
  tell_state(id)
end

-- Whoever submitted the job may wait for its answer: they are sent the whole of it, when it is not large.
local function reply(id, result)
  local record = redis.call('HGETALL', key(id))
  local fields = {}
  for i = 1, #record, 2 do fields[record[i]] = record[i + 1] end
  if not fields.reply or fields.reply == '' then return end
  fields.digests, fields.fingerprint, fields.idempotency_key = nil, nil, nil
  local whole = '{"id":"' .. id .. '","job":' .. cjson.encode(fields) .. ',"result":' .. (result or 'null') .. '}'
  if #whole < 65536 then redis.call('PUBLISH', 'allot:reply:' .. fields.reply, whole) end
end

-- The last step of every end: what nobody asks of a job that has ended goes, or all of it.
local function settle(id, now)
  redis.call('HDEL', key(id), 'form', 'priority', 'seconds', 'retries', 'reply', 'needs', 'fingerprint',
    'idempotency_key')
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
