-- What one owner may have, and what they have had. Any amount where a limit is 0. Keys:
--
--   allot:quota:{owner}        hash  limits of one owner in the place of the service's, see quotas.py
--   allot:held:{owner}         set   ids of the jobs each of which holds a worker; those that ride along hold none
--   allot:kept:{owner}         hash  bytes that are kept for them: `store` (keep.lua) and `redis`
--   allot:spent:{queue}:{day}  hash  owner -> seconds of workers, by days since 1970
--
-- A script that hands out jobs gets the service's limit of workers as its last argument.

local DAY_S = 86400

local function record_key(id) return 'allot:job:' .. id end
local function weight_of(owner)
  local weight = tonumber(redis.call('HGET', 'allot:weights', owner) or 1) or 1
  return weight > 0 and weight or 1
end

local function held_key(owner) return 'allot:held:' .. owner end
local function spent_key(queue, now) return 'allot:spent:' .. queue .. ':' .. math.floor(now / DAY_S) end

local function hold_worker(id, owner)
  if owner then redis.call('SADD', held_key(owner), id) end
end

-- Whether the owner's jobs hold all the workers that they may. A job that is gone by accident holds none.
local function holds_all(owner)
  local most = tonumber(redis.call('HGET', 'allot:quota:' .. owner, 'workers') or ARGV[#ARGV]) or 0
  if most <= 0 or redis.call('SCARD', held_key(owner)) < most then return false end
  for _, id in ipairs(redis.call('SMEMBERS', held_key(owner))) do
    local state = redis.call('HGET', record_key(id), 'state')
    if state ~= 'queued' and state ~= 'running' then redis.call('SREM', held_key(owner), id) end
  end
  return redis.call('SCARD', held_key(owner)) >= most
end

-- So many bytes more of Redis are kept for a job of the owner's.
local function keep_bytes(id, owner, count)
  if count == 0 then return end
  redis.call('HINCRBY', record_key(id), 'kept', count)
  redis.call('HINCRBY', 'allot:kept:' .. owner, 'redis', count)
end

-- A job ends: the time of its worker is its owner's. Jobs that ran together share it. Its owner's turn was charged with
-- the estimate (lines.lua); what that was wrong by follows, so that nobody gains by jobs that are hard to estimate.
-- `bills` gathers what each owner, on each kind of worker, is charged for the jobs that end in one step.
local function add_to_bill(bills, id, record, now)
  local name = record.owner .. ' ' .. record.queue
  local bill = bills[name]
  if not bill then
    bill = {owner = record.owner, queue = record.queue, ids = {}, spent = 0, more = 0}
    bills[name] = bill
  end
  bill.ids[#bill.ids + 1] = id
  if record.state ~= 'running' or not record.begun_at then return end
  local among = not record.alone and tonumber(record.among) or 1
  local spent = math.max(0, tonumber(now) - tonumber(record.begun_at)) / among
  bill.ran, bill.spent, bill.more = true, bill.spent + spent, bill.more + spent - (tonumber(record.seconds) or 0)
end

-- In the queue `calm` nobody waits, as is known by now; false where somebody does.
local function charge_all(bills, now, calm)
  for _, bill in pairs(bills) do
    local owner, fair = bill.owner, 'allot:fair:' .. bill.queue
    redis.call('SREM', held_key(owner), unpack(bill.ids))
    if bill.ran then
      local more = string.format('%.17g', bill.more / weight_of(owner))
      if bill.queue ~= calm and redis.call('ZSCORE', fair, owner) then
        redis.call('ZINCRBY', fair, more, owner)
      else
        redis.call('HINCRBYFLOAT', 'allot:had:' .. bill.queue, owner, more)
      end
      local spent = string.format('%.6f', bill.spent)
      local sum = redis.call('HINCRBYFLOAT', spent_key(bill.queue, now), owner, spent)
      if tonumber(sum) == tonumber(spent) then  -- their first of the day, which may be the first of all
        redis.call('EXPIRE', spent_key(bill.queue, now), 2 * DAY_S)
      end
    end
  end
end

-- Which limit one more job of `count` bytes and no estimate would break; nothing when it may come. `most`: jobs that
-- wait, seconds a day, bytes in all, bytes in Redis, share of a queue that has `free` places left and in which `own` jobs
-- of `seconds` are the owner's. An owner at their share leaves others as much again, so however many they are, a place is
-- left for one more.
local function over_quota(owner, queue, now, count, most, free, own, seconds)
  if most[1] > 0 then
    local other = 'allot:backlog:' .. (queue == 'cpu' and 'gpu' or 'cpu')
    if own + tonumber(redis.call('HGET', other, 'n:' .. owner) or 0) >= most[1] then return 'queued' end
  end
  if most[5] < 1 and own > 0 and own + 1 > most[5] * (own + free) then return 'line' end
  if most[2] > 0 then
    local spent = tonumber(redis.call('HGET', spent_key(queue, now), owner) or 0)
    if spent >= most[2] then return 'spent' end
    if spent + seconds >= most[2] then return 'booked' end
  end
  if most[3] > 0 or most[4] > 0 then
    local kept = redis.call('HMGET', 'allot:kept:' .. owner, 'store', 'redis')
    local store, here = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
    if most[3] > 0 and store + here + count > most[3] then return 'bytes' end
    if most[4] > 0 and here + count > most[4] then return 'share' end
  end
end
