-- now, worker, queue, until when the worker waits if there is nothing or '' where it has more to finish; then of each job:
-- id, execution, state, fields to set (flat JSON list), result document or '', names of its arrays' blobs. Answers 1 for
-- each that ended so, 0 for one that another execution has by now; and at last 1 where the worker waits from now on.
--
-- What the jobs of a batch share is written once for all of them: most of a script's time goes into calls of Redis.
local now, worker, queue = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local over, bills, kept = {}, {}, {}  -- {id, execution, record} of each that ends here; of owners: time, bytes
local calm = redis.call('EXISTS', 'allot:fair:' .. queue) == 0  -- nobody waits in a line

local function finish_one(id, execution, state, said, document, digests)
  local record = record_of(id)
  if record.state ~= 'running' or record.execution ~= execution then
    return (record.state == state and record.execution == execution) and 1 or 0  -- asked again after a lost answer
  end
  said, digests = cjson.decode(said), cjson.decode(digests)
  local function set(name, value) said[#said + 1], said[#said + 2] = name, value end
  set('state', state)
  set('ended_at', exactly(now))
  set('expires_at', exactly(now + tonumber(record.result_ttl_s)))
  set('version', exactly((tonumber(record.version) or 0) + 1))
  if document ~= '' then
    if #digests > 0 then
      local held = cjson.decode(record.digests or '[]')
      for _, digest in ipairs(digests) do held[#held + 1] = digest end
      set('digests', cjson.encode(held))
      hold(id, digests)
      has_brought(digests)
    end
    redis.call('SET', 'allot:result:' .. id, document)
  end
  local streams = has_stream(id)
  local more = #document + kept_after(id, streams)
  set('kept', string.format('%.0f', (tonumber(record.kept) or 0) + more))
  kept[record.owner] = (kept[record.owner] or 0) + more
  add_to_bill(bills, id, record, now)
  redis.call('HSET', key(id), unpack(said))
  for i = 1, #said, 2 do record[said[i]] = said[i + 1] end
  if streams then note_state(id, record) end
  reply(id, record, document ~= '' and document)
  over[#over + 1] = {id, execution, record}
  return 1
end

-- One call with the arguments of all jobs, if there are any.
local function of_all(command, name, list)
  if #list > 0 then redis.call(command, name, unpack(list)) end
end

local answers = {}
for i = 5, #ARGV, 6 do
  answers[#answers + 1] = finish_one(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end

charge_all(bills, now, calm and queue)
for owner, more in pairs(kept) do redis.call('HINCRBY', 'allot:kept:' .. owner, 'redis', more) end
local expiry, ids, executions, arrays, events, spent = {}, {}, {}, {}, {}, {}
for k, one in ipairs(over) do
  local id, execution, record = unpack(one)
  expiry[2 * k - 1], expiry[2 * k] = record.expires_at, id
  ids[k], executions[k], arrays[k] = id, {id, execution}, arrays_key(id)
  events[record.state .. ':' .. record.solver] = (events[record.state .. ':' .. record.solver] or 0) + 1
  add_seconds(spent, record)
end
of_all('ZADD', 'allot:expiry', expiry)
of_all('ZREM', 'allot:active', ids)
for name, times in pairs(events) do redis.call('HINCRBY', 'allot:counts', name, times) end
keep_seconds(spent)
rq_end(queue, worker, executions, arrays)
tell_all(over)
for _, one in ipairs(over) do settle(one[1], one[3], now) end
rq_state(worker, 'idle', #over)
local waits = ARGV[4] ~= '' and calm and redis.call('LLEN', rq_line(queue)) == 0
if waits then redis.call('ZADD', 'allot:idle:' .. queue, ARGV[4], worker) end
answers[#answers + 1] = waits and 1 or 0
return answers
