-- id, now, record (flat JSON list), names of the blobs, queue, most queued, idempotency key, fingerprint, its ttl,
-- the arrays that the record brings along (JSON) or '', stamp, seconds for which RQ lists a failed job, limits of the
-- owner: jobs that wait, seconds a day, bytes, bytes in Redis, share of the queue; seconds until an execution counts as
-- lost; the time after which nothing may be made, as somebody will have given up by then, or ''; most workers of one owner
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
local free = tonumber(ARGV[6]) - waiting(queue)
if free <= 0 then return {'full', ''} end
local fields = {}
for i = 1, #record, 2 do fields[record[i]] = record[i + 1] end
local limits, bytes = {}, #ARGV[3] + #ARGV[10]
for i = 1, 5 do limits[i] = tonumber(ARGV[12 + i]) end
local over = over_quota(fields.owner, queue, now, bytes, limits, free)
if over then return {'quota', over} end
for i, name in ipairs(digests) do
  if redis.call('HEXISTS', 'allot:blob:' .. name, fields.owner) == 0 then
    digests[i] = string.match(name, "^[^:]*:[^:]*")  -- sha256:... alone: uploaded in the days when all owners shared their blobs
    if redis.call('HEXISTS', 'allot:blob:' .. digests[i], fields.owner) == 0 then return {'blob', digests[i]} end
  end
end
hold(id, digests)
if #digests > 0 then record[#record + 1], record[#record + 2] = 'digests', cjson.encode(digests) end
redis.call('HSET', key(id), 'version', 1, 'kept', bytes, unpack(record))  -- nobody can have heard of it yet, so nobody is told
if ARGV[10] ~= '' then redis.call('SET', 'allot:arrays:' .. id, ARGV[10]) end
redis.call('HINCRBY', 'allot:kept:' .. fields.owner, 'redis', bytes)
redis.call('ZADD', 'allot:jobs:' .. fields.owner, now, id)
redis.call('ZADD', 'allot:active', now, id)
if idem ~= '' then
  redis.call('HSET', idem, 'fingerprint', ARGV[8], 'id', id)
  redis.call('EXPIRE', idem, ARGV[9])
end
redis.call('HINCRBY', 'allot:counts', 'submitted:' .. fields.solver, 1)
local function straight()
  fields.version = '1'
  return hand_straight(queue, id, fields, now, ARGV[11], tonumber(ARGV[18]), ARGV[12])
end
if not hand_over(queue, id, fields, now, ARGV[11], ARGV[12], straight) then
  join_line(queue, id, fields.owner, fields.form, tonumber(fields.priority), tonumber(fields.seconds))
  feed(queue, now, ARGV[11], ARGV[12])
end
if fields.reply and fields.reply ~= '' then return {'created', id, 0} end  -- who waits asks for no position
return {'created', id, position(queue, id) or 1}
