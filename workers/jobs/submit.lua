-- id, now, record (flat JSON list), names of the blobs, queue, most queued, idempotency key, fingerprint, its ttl,
-- the arrays that the record brings along (JSON) or '', stamp, seconds for which RQ lists a failed job, limits of the
-- owner: jobs that wait, seconds a day, bytes, bytes in Redis, share of the queue; seconds until an execution counts as
-- lost; the time after which nothing may be made, as somebody will have given up by then, or ''; names of the blobs that
-- were kept for it; most workers of one owner
local id, now, record, digests, queue = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), cjson.decode(ARGV[4]), ARGV[5]
local idem = ARGV[7]
if idem ~= '' then
  local seen = redis.call('HMGET', idem, 'fingerprint', 'id')
  if seen[1] then
    if seen[1] ~= ARGV[8] then return {'conflict', seen[2]} end
    return {'seen', seen[2]}
  end
end
if redis.call('EXISTS', key(id)) == 1 then return {'seen', id} end  -- asked again after a lost answer
if ARGV[19] ~= '' then  -- a Redis that was frozen finds here what it was asked long ago
  local time = redis.call('TIME')
  if tonumber(time[1]) + tonumber(time[2]) / 1e6 > tonumber(ARGV[19]) then return {'late', ''} end
end
local fields, place = {}, {}
for i = 1, #record, 2 do fields[record[i]], place[record[i]] = record[i + 1], i + 1 end
local owner = fields.owner
local ready, behind, own, seconds = backlog_of(queue, owner)
local free = tonumber(ARGV[6]) - ready - behind
if free <= 0 then return {'full', ''} end

local limits, bytes = {}, #ARGV[3] + #ARGV[10]
for i = 1, 5 do limits[i] = tonumber(ARGV[12 + i]) end
local over = over_quota(owner, queue, now, bytes, limits, free, own, seconds)
if over then return {'quota', over} end
for i, name in ipairs(digests) do
  if redis.call('HEXISTS', 'allot:blob:' .. name, owner) == 0 then
    digests[i] = string.match(name, "^[^:]*:[^:]*")  -- sha256:... alone: uploaded in the days when all owners shared their blobs
    if redis.call('HEXISTS', 'allot:blob:' .. digests[i], owner) == 0 then return {'blob', digests[i]} end
  end
end
local idle = past_lines(queue, owner, now, ready)
local worker, device
if idle then worker, device = listener(queue, idle) end

hold(id, digests)
has_brought(cjson.decode(ARGV[20]))
local function add(name, value) record[#record + 1], record[#record + 2] = name, value end
if #digests > 0 then add('digests', cjson.encode(digests)) end
add('kept', bytes)
local version, begun, execution, told = 1, ARGV[2], straight_execution(id), ''
if worker then  -- it is sent the whole of the job, so that what is written has begun
  version = 2
  record[place.state], record[place.attempt] = 'running', '1'
  for _, one in ipairs({{'execution', execution}, {'begun_at', begun}, {'started_at', begun}, {'ran_on', device}}) do
    add(one[1], one[2])
    told = told .. ',"' .. one[1] .. '",' .. cjson.encode(one[2])
  end
end
redis.call('HSET', key(id), 'version', version, unpack(record))  -- nobody can have heard of it yet, so nobody is told
if ARGV[10] ~= '' then redis.call('SET', arrays_key(id), ARGV[10]) end
redis.call('HINCRBY', 'allot:kept:' .. owner, 'redis', bytes)
redis.call('ZADD', 'allot:jobs:' .. owner, ARGV[2], id)
redis.call('ZADD', 'allot:active', ARGV[2], id)
if idem ~= '' then
  redis.call('HSET', idem, 'fingerprint', ARGV[8], 'id', id)
  redis.call('EXPIRE', idem, ARGV[9])
end
redis.call('HINCRBY', 'allot:counts', 'submitted:' .. fields.solver, 1)

-- A new job that finds a worker waiting and no other job goes to that worker past all lines. One that listens is started
-- on it at once, and sent the whole of it: the arrays are a line of their own, as they may be long, and are no text that
-- has to be written as JSON. Where none listens, RQ's list has the job until somebody takes it.
if idle then
  charge_past_lines(queue, owner, tonumber(fields.seconds))
  if worker then
    local left = rq_start(queue, worker, {{id, execution, fields}}, begun, ARGV[11], tonumber(ARGV[18]), ARGV[12], true)[1]
    redis.call('ZREM', 'allot:idle:' .. queue, worker)
    rq_state(worker, 'busy', 0)
    redis.call('SET', handed_key(worker), id, 'EX', 60)
    local whole = string.sub(ARGV[3], 1, -2) .. ',"state","running","attempt","1","version","2"' .. told
    whole = '["' .. id .. '","' .. execution .. '",' .. left .. ',' .. whole .. ']]\n' .. ARGV[10]
    redis.call('PUBLISH', handed_key(worker), whole)
  else
    rq_push(queue, id, ARGV[11], fields.retries or 0, ARGV[12])
  end
  hold_worker(id, owner)
else
  join_line(queue, id, owner, fields.form, tonumber(fields.priority), tonumber(fields.seconds))
  feed(queue, now, ARGV[11], ARGV[12])
end
if fields.reply and fields.reply ~= '' then return {'created', id, 0} end  -- who waits asks for no position
return {'created', id, position(queue, id) or 1}
