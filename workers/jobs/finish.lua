-- now, worker, queue, then of each job: id, execution, state, fields to set (flat JSON list), result document or '',
-- names of its arrays' blobs. Answers 1 for each that ended so, 0 for one that another execution has by now.
local now, worker, queue = tonumber(ARGV[1]), ARGV[2], ARGV[3]

local function finish_one(id, execution, state, fields, document, digests)
  if not mine(id, execution) then
    local seen = redis.call('HMGET', key(id), 'state', 'execution')
    return (seen[1] == state and seen[2] == execution) and 1 or 0  -- asked again after a lost answer
  end
  fields, digests = cjson.decode(fields), cjson.decode(digests)
  if #fields > 0 then redis.call('HSET', key(id), unpack(fields)) end
  if document ~= '' then
    local held = cjson.decode(redis.call('HGET', key(id), 'digests') or '[]')
    for _, digest in ipairs(digests) do held[#held + 1] = digest end
    if #held > 0 then redis.call('HSET', key(id), 'digests', cjson.encode(held)) end
    hold(id, digests)
    redis.call('SET', 'allot:result:' .. id, document)
    keep_bytes(id, redis.call('HGET', key(id), 'owner'), #document)
  end
  finish(id, state, now)
  rq_end(queue, id, execution, worker)
  reply(id, document ~= '' and document)
  settle(id, now)
  return 1
end

local answers, done = {}, 0
for i = 4, #ARGV, 6 do
  local one = finish_one(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
  answers[#answers + 1], done = one, done + one
end
rq_state(worker, 'idle', done)
return answers
