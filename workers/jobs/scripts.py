"""The transitions of a job's record as Lua: each runs in Redis as one step, so that no reader sees half of one.

Every script is `_SHARED` and its own text. Times are seconds since 1970, passed in by the caller. The keys are
drawn in workers/jobs/job.py; they are built inside the scripts, which rules out Redis Cluster and nothing else.
"""

from workers.rq import LUA

_SHARED = (
    LUA
    + """
local function key(id) return 'allot:job:' .. id end

local function tell(id, kind, data)
  redis.call('HINCRBY', key(id), 'version', 1)
  redis.call('XADD', 'allot:events:' .. id, 'MAXLEN', '~', 2000, '*', 'kind', kind, 'data', data)
end

local function tell_state(id)
  local seen = redis.call('HMGET', key(id), 'state', 'attempt', 'termination', 'verified')
  local data = {state = seen[1], attempt = tonumber(seen[2])}
  if seen[3] and seen[3] ~= '' then data.termination = seen[3] end
  if seen[4] == 'true' or seen[4] == 'false' then data.verified = seen[4] == 'true' end
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
end

local function finish(id, state, now)
  local ttl = tonumber(redis.call('HGET', key(id), 'result_ttl_s'))
  redis.call('HSET', key(id), 'state', state, 'ended_at', now, 'expires_at', now + ttl)
  redis.call('ZADD', 'allot:expiry', now + ttl, id)
  redis.call('ZREM', 'allot:active', id)
  count(id, state)
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
"""
)

# id, now, record (flat JSON list), names of the blobs, queue, most queued, idempotency key, fingerprint, its ttl
CREATE = (
    _SHARED
    + """
local id, now, record, digests = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), cjson.decode(ARGV[4])
local idem = ARGV[7]
if idem ~= '' then
  local seen = redis.call('HMGET', idem, 'fingerprint', 'id')
  if seen[1] then
    if seen[1] ~= ARGV[8] then return {'conflict', seen[2]} end
    return {'seen', seen[2]}
  end
end
if waiting(ARGV[5]) >= tonumber(ARGV[6]) then return {'full', ''} end
local fields = {}
for i = 1, #record, 2 do fields[record[i]] = record[i + 1] end
for i, name in ipairs(digests) do
  if redis.call('HEXISTS', 'allot:blob:' .. name, fields.owner) == 0 then
    digests[i] = string.sub(name, 1, 71)  -- sha256:... alone: uploaded in the days when all owners shared their blobs
    if redis.call('HEXISTS', 'allot:blob:' .. digests[i], fields.owner) == 0 then return {'blob', digests[i]} end
  end
end
hold(id, digests)
redis.call('HSET', key(id), unpack(record))
if #digests > 0 then redis.call('HSET', key(id), 'digests', cjson.encode(digests)) end
redis.call('ZADD', 'allot:jobs:' .. fields.owner, now, id)
redis.call('ZADD', 'allot:unsent', now, id)
redis.call('ZADD', 'allot:active', now, id)
if idem ~= '' then
  redis.call('HSET', idem, 'fingerprint', ARGV[8], 'id', id)
  redis.call('EXPIRE', idem, ARGV[9])
end
count(id, 'submitted')
tell_state(id)
return {'created', id}
"""
)

# id, execution, now, device name
BEGIN = (
    _SHARED
    + """
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
"""
)

# id, execution, kind, data
PROGRESS = (
    _SHARED
    + """
if not mine(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', key(ARGV[1]), 'progress', ARGV[4])
tell(ARGV[1], ARGV[3], ARGV[4])
return 1
"""
)

# id, execution, what the job needs (JSON)
EXPECT = (
    _SHARED
    + """
if not mine(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', key(ARGV[1]), 'needs', ARGV[3])
return 1
"""
)

# id, execution, now, state, fields to set (flat JSON list), result document or '', names of its arrays' blobs
FINISH = (
    _SHARED
    + """
local id, now = ARGV[1], tonumber(ARGV[3])
if not mine(id, ARGV[2]) then
  local seen = redis.call('HMGET', key(id), 'state', 'execution')
  return (seen[1] == ARGV[4] and seen[2] == ARGV[2]) and 1 or 0  -- asked again after a lost answer
end
local fields, digests = cjson.decode(ARGV[5]), cjson.decode(ARGV[7])
if #fields > 0 then redis.call('HSET', key(id), unpack(fields)) end
if ARGV[6] ~= '' then
  local held = cjson.decode(redis.call('HGET', key(id), 'digests'))
  for _, digest in ipairs(digests) do held[#held + 1] = digest end
  if #held > 0 then redis.call('HSET', key(id), 'digests', cjson.encode(held)) end
  hold(id, digests)
  redis.call('SET', 'allot:result:' .. id, ARGV[6])
end
finish(id, ARGV[4], now)
return 1
"""
)

# id, execution or '' for any that is not alive, now, "again" or "fail", error (JSON)
LOSE = (
    _SHARED
    + """
local id, now = ARGV[1], tonumber(ARGV[3])
local seen = redis.call('HMGET', key(id), 'state', 'execution', 'cancel')
if seen[1] ~= 'running' and seen[1] ~= 'queued' then return 'ended' end
if ARGV[2] ~= '' then
  if seen[1] == 'running' and seen[2] ~= ARGV[2] then return 'fenced' end
elseif alive(id, seen[2], now) then
  return 'fenced'
end
if seen[3] then
  unqueue(id)
  finish(id, 'cancelled', now)
  return 'cancelled'
end
if ARGV[4] == 'again' then
  redis.call('HSET', key(id), 'state', 'queued', 'execution', '')
  redis.call('HDEL', key(id), 'progress', 'needs')
  count(id, 'requeued')
  tell_state(id)
  return 'queued'
end
redis.call('HSET', key(id), 'error', ARGV[5])
finish(id, 'failed', now)
return 'failed'
"""
)

# id, now
CANCEL = (
    _SHARED
    + """
local id, now = ARGV[1], tonumber(ARGV[2])
local state = redis.call('HGET', key(id), 'state')
if state == 'queued' then
  unqueue(id)
  finish(id, 'cancelled', now)
elseif state == 'running' and redis.call('HSETNX', key(id), 'cancel', now) == 1 then
  tell(id, 'state', cjson.encode({state = 'running', cancelling = true}))
end
return state
"""
)

# id, now
DISCARD = (
    _SHARED
    + """
local id, now = ARGV[1], tonumber(ARGV[2])
local seen = redis.call('HMGET', key(id), 'state', 'owner')
if seen[1] == 'running' then
  redis.call('HSET', key(id), 'discard', 1)
  redis.call('HSETNX', key(id), 'cancel', now)
  redis.call('ZREM', 'allot:jobs:' .. seen[2], id)
  tell(id, 'state', cjson.encode({state = 'running', cancelling = true}))
elseif seen[1] then
  if seen[1] == 'queued' then unqueue(id) end
  purge(id, now)
end
return seen[1]
"""
)

# now, tombstone ttl, at most so many
EXPIRE = (
    _SHARED
    + """
local ids = redis.call('ZRANGEBYSCORE', 'allot:expiry', '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local owner = redis.call('HGET', key(id), 'owner')
  if owner then redis.call('SET', 'allot:tomb:' .. id, owner, 'EX', ARGV[2]) end
  purge(id, tonumber(ARGV[1]))
end
return #ids
"""
)

# name, now: forget a blob that nobody holds; 1 when its bytes may go, and until they are gone KEEP answers 0
CONDEMN = """
local blob, refs, now = 'allot:blob:' .. ARGV[1], 'allot:refs:' .. ARGV[1], tonumber(ARGV[2])
local latest = now
if redis.call('SCARD', refs) > 0 then
  latest = now + 300  -- whoever lets go of it brings the next look forward
else
  local holds = redis.call('HGETALL', blob)
  for i = 2, #holds, 2 do latest = math.max(latest, tonumber(holds[i])) end
end
if latest > now then
  redis.call('ZADD', 'allot:blobs', latest, ARGV[1])
  return 0
end
redis.call('DEL', blob)
redis.call('ZREM', 'allot:blobs', ARGV[1])
redis.call('SET', 'allot:condemned:' .. ARGV[1], 1, 'EX', 60)
return 1
"""

# name, owner, until: this owner keeps the blob; 0 while its bytes are being deleted
KEEP = """
if redis.call('EXISTS', 'allot:condemned:' .. ARGV[1]) == 1 then return 0 end
local blob, held = 'allot:blob:' .. ARGV[1], redis.call('HGET', 'allot:blob:' .. ARGV[1], ARGV[2])
if not held or tonumber(held) < tonumber(ARGV[3]) then redis.call('HSET', blob, ARGV[2], ARGV[3]) end
redis.call('ZADD', 'allot:blobs', 'NX', ARGV[3], ARGV[1])
return 1
"""
