-- What the scripts of a job's record have in common. The keys are drawn in workers/jobs/job.py.

local function key(id) return 'allot:job:' .. id end
local function arrays_key(id) return 'allot:arrays:' .. id end
local function events_key(id) return 'allot:events:' .. id end
local function idem_key(owner, name) return 'allot:idem:' .. #owner .. ':' .. owner .. ':' .. name end

local function share_key(digest) return 'allot:share:' .. digest end

local function event(id, at, kind, data)
  redis.call('XADD', events_key(id), at, 'kind', kind, 'data', data)
end

local function has_stream(id) return redis.call('EXISTS', events_key(id)) == 1 end

-- A number as text from which the same number is read.
local function exactly(number) return string.format('%.17g', number) end

-- All fields of a job's record by name; none when there is no such job, or no record in its place.
local function record_of(id)
  local flat, record = redis.pcall('HGETALL', key(id)), {}
  for i = 1, #flat, 2 do record[flat[i]] = flat[i + 1] end
  return record
end

-- Somebody may wait for this job.
local function publish(id, state, version)
  redis.call('PUBLISH', 'allot:told', id .. ' ' .. state .. ' ' .. version)
end

-- Whether a record is one that can be worked with: what a script or a worker takes for a number or for JSON is that.
local function sound(record)
  for _, name in ipairs({'attempt', 'version', 'created_at', 'time_limit_s', 'result_ttl_s'}) do
    if not tonumber(record[name]) then return false end
  end
  for _, name in ipairs({'inputs', 'options'}) do
    if not record[name] or not pcall(cjson.decode, record[name]) then return false end
  end
  return (record.owner and record.solver and record.device and record.queue) and true or false
end

-- The same for several, {id, anything, record} each, in one message.
local function tell_all(jobs)
  local lines = {}
  for k, one in ipairs(jobs) do lines[k] = one[1] .. ' ' .. one[3].state .. ' ' .. one[3].version end
  if #lines > 0 then redis.call('PUBLISH', 'allot:told', table.concat(lines, '\n')) end
end

-- Something has changed. Events are kept for those jobs alone that have a stream, see open_stream.
local function tell(id, kind, data)
  local version = redis.call('HINCRBY', key(id), 'version', 1)
  if has_stream(id) then event(id, '*', kind, data) end
  publish(id, redis.call('HGET', key(id), 'state'), version)
end

-- The record's state as an event of a job that has a stream.
local function note_state(id, record)
  local data = {state = record.state, attempt = tonumber(record.attempt)}
  if record.termination and record.termination ~= '' then data.termination = record.termination end
  if record.verified == 'true' or record.verified == 'false' then data.verified = record.verified == 'true' end
  event(id, '*', 'state', cjson.encode(data))
end

local function tell_state(id)
  redis.call('HINCRBY', key(id), 'version', 1)
  local record = record_of(id)
  if has_stream(id) then note_state(id, record) end
  publish(id, record.state, record.version)
end

-- A job gets a stream of events when it has run for a while, or something happened to it that its record does not
-- tell. The stream then begins with what went before; queue.py gives the same events the same ids without one.
local function open_stream(id)
  if has_stream(id) then return end
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

-- Blobs that were kept for a job, each as often as it was, are held by that job now (keep.lua).
local function has_brought(names)
  for _, name in ipairs(names) do
    local due = tonumber(redis.call('HGET', 'allot:brought', name) or 0)
    if due > 0 then redis.call('HINCRBY', 'allot:brought', name, -1) end
  end
end

-- A job holds this blob no longer. What came with a job, and no other holds or is about to hold, its owner gives up too.
local function release(id, name, now)
  redis.call('SREM', 'allot:refs:' .. name, id)
  if redis.call('HGET', 'allot:brought', name) == '0' and redis.call('EXISTS', 'allot:refs:' .. name) == 0 then
    redis.call('DEL', 'allot:blob:' .. name)
  end
  redis.call('ZADD', 'allot:blobs', 'LT', now, name)
end

-- What a job holds is no longer held: blobs, its owner's places and bytes. Its record may be junk.
local function let_go(id, now)
  local seen = redis.pcall('HMGET', key(id), 'owner', 'digests', 'kept')
  if seen.err then return end
  local readable, digests = pcall(cjson.decode, seen[2] or '[]')
  for _, digest in ipairs(readable and type(digests) == 'table' and digests or {}) do
    if type(digest) == 'string' then release(id, digest, now) end
  end
  if seen[1] then
    redis.call('ZREM', 'allot:jobs:' .. seen[1], id)
    redis.call('SREM', held_key(seen[1]), id)
    keep_bytes(id, seen[1], -(tonumber(seen[3] or 0) or 0))
  end
end

-- Nobody has the job any more.
local function forget(id)
  redis.call('ZREM', 'allot:expiry', id)
  redis.call('ZREM', 'allot:active', id)
  for _, digest in ipairs(redis.pcall('HVALS', 'allot:shares:' .. id)) do redis.call('DEL', share_key(digest)) end
  redis.call('DEL', arrays_key(id), 'allot:result:' .. id, events_key(id), 'allot:shares:' .. id)
  publish(id, 'gone', 0)
end

-- What is remembered of the jobs of one owner that are gone: MOST_GONE of them, and a week at most. Without an end an
-- owner of many small jobs would fill Redis with tombstones.
local MOST_GONE, GONE_S = 100000, 604800

-- The oldest of them is forgotten: its id is unknown from now on, and its Idempotency-Key may be used again.
local function forget_oldest(list)
  local oldest, idem = string.match(redis.call('RPOP', list), '^(%S+) ?(.*)$')
  redis.call('DEL', 'allot:tomb:' .. oldest)
  if idem ~= '' and redis.call('HGET', idem, 'id') == oldest then redis.call('DEL', idem) end
end

local function remember_gone(id)
  local seen = redis.pcall('HMGET', key(id), 'owner', 'idempotency_key')
  if seen.err or not seen[1] then return end
  local idem, list = seen[2] and ' ' .. idem_key(seen[1], seen[2]) or '', 'allot:gone:' .. seen[1]
  if redis.call('LPUSH', list, id .. idem) > MOST_GONE then forget_oldest(list) end
  redis.call('EXPIRE', list, GONE_S)
end

local function purge(id, now)
  remember_gone(id)
  let_go(id, now)
  redis.call('DEL', key(id))
  forget(id)
end

-- Junk stands where a job's record should. All forget the job, and the junk is kept for a week, for who wants to look at
-- it. The janitor tells the log.
local function set_aside(id)
  let_go(id, tonumber(redis.call('TIME')[1]))
  if redis.call('EXISTS', key(id)) == 1 then
    redis.call('RENAME', key(id), 'allot:aside:' .. id)
    redis.call('EXPIRE', 'allot:aside:' .. id, 604800)
  end
  redis.call('DEL', RQ_JOB .. id)
  forget(id)
  redis.call('HINCRBY', 'allot:counts', 'damaged:record', 1)
  redis.call('RPUSH', 'allot:damaged', 'record ' .. id)
end

-- What is kept of a job more, once it has ended: its arrays go, and its events stay.
local function kept_after(id, streams)
  local events = streams and redis.call('MEMORY', 'USAGE', events_key(id)) or 0
  return events - redis.call('STRLEN', arrays_key(id))
end

local function finish(id, state, now)
  local before, bills = record_of(id), {}
  local ttl = tonumber(before.result_ttl_s)
  if before.owner and before.queue then
    add_to_bill(bills, id, before, now)
    charge_all(bills, now)
    keep_bytes(id, before.owner, kept_after(id, has_stream(id)))
  end
  redis.call('HSET', key(id), 'state', state, 'ended_at', now, 'expires_at', now + ttl)
  redis.call('ZADD', 'allot:expiry', now + ttl, id)
  redis.call('ZREM', 'allot:active', id)
  count(id, state)
  local spent = {}
  add_seconds(spent, record_of(id))
  keep_seconds(spent)
  tell_state(id)
end

-- What a worker is told of a job: {id, execution, runs left, record (flat), arrays or ''}.
local function order_of(id, execution, left, record)
  local flat = {}
  for name, value in pairs(record) do flat[#flat + 1], flat[#flat + 2] = name, value end
  return {id, execution, left, flat, redis.call('GET', arrays_key(id)) or ''}
end

-- Mark jobs, {id, execution, record} each, as running on a worker and its device; answers what it is told of each.
local function start_all(queue, worker, device, jobs, now, stamp, ttl, keep_s)
  local told, left = {}, rq_start(queue, worker, jobs, now, stamp, ttl, keep_s)
  for k, one in ipairs(jobs) do
    local id, execution, record = unpack(one)
    local changes = {
      state = 'running', execution = execution, begun_at = now, ran_on = device, started_at = record.started_at or now,
      attempt = exactly(tonumber(record.attempt) + 1), version = exactly((tonumber(record.version) or 0) + 1),
      among = #jobs > 1 and tostring(#jobs) or nil,
    }
    local flat = {}
    for name, value in pairs(changes) do
      flat[#flat + 1], flat[#flat + 2] = name, value
      record[name] = value
    end
    redis.call('HSET', key(id), unpack(flat))
    if has_stream(id) then note_state(id, record) end
    told[k] = order_of(id, execution, left[k], record)
  end
  return told
end

-- A job that is handed straight to a worker has this execution: it is its first, and nobody else makes one of that name.
local function straight_execution(id) return 'straight-' .. id end
local function handed_key(worker) return 'allot:handed:' .. worker end

-- Of workers that wait one that hears what it is handed, and its device. One that was killed hears nothing any more.
local function listener(queue, idle)
  for _, worker in ipairs(idle) do
    local device = redis.call('HGET', 'allot:listeners:' .. queue, worker)
    if device and redis.call('PUBSUB', 'NUMSUB', handed_key(worker))[2] > 0 then return worker, device end
  end
end

local SETTLED = {'derived', 'form', 'priority', 'seconds', 'retries', 'reply', 'needs', 'fingerprint'}
local TOLD = {'owner', 'solver', 'state', 'attempt', 'device', 'ran_on', 'progress', 'timings_ms', 'termination',
  'verified', 'error', 'created_at', 'started_at', 'ended_at', 'expires_at', 'inputs', 'options', 'time_limit_s',
  'version', 'note'}

-- Whoever submitted the job may wait for its answer: they are sent the whole of it, when it is not large.
-- Redis drops a subscriber whose output lags by 32 MiB, as is its default: 256 of these.
local LONGEST_REPLY = 131072
local function reply(id, record, result)
  if not record.reply or record.reply == '' or #(result or '') > LONGEST_REPLY then return end
  local fields = {}
  for _, name in ipairs(TOLD) do fields[name] = record[name] end
  local whole = '{"id":"' .. id .. '","job":' .. cjson.encode(fields) .. ',"result":' .. (result or 'null') .. '}'
  redis.call('PUBLISH', 'allot:reply:' .. record.reply, whole)
end

-- The last step of every end but for the arrays: what nobody asks of a job that has ended goes, or all of it.
local function settle(id, record, now)
  if record.discard then return purge(id, now) end
  local over = {}
  for _, name in ipairs(SETTLED) do
    if record[name] then over[#over + 1] = name end
  end
  if #over > 0 then redis.call('HDEL', key(id), unpack(over)) end
end

-- The end of a job that nobody solved, and of all that belongs to it.
local function close(id, state, now)
  finish(id, state, now)
  local record = record_of(id)
  reply(id, record)
  settle(id, record, now)
  redis.call('DEL', arrays_key(id))
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
