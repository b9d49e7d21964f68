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

local function hold_worker(id)
  local owner = redis.call('HGET', record_key(id), 'owner')
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
local function charge_time(id, now)
  local seen = redis.call('HMGET', record_key(id), 'owner', 'queue', 'state', 'begun_at', 'among', 'alone', 'seconds')
  if not seen[1] then return end
  redis.call('SREM', held_key(seen[1]), id)
  if seen[3] ~= 'running' or not seen[4] then return end
  local among = not seen[6] and tonumber(seen[5]) or 1
  local spent = math.max(0, tonumber(now) - tonumber(seen[4])) / among
  local more = string.format('%.17g', (spent - (tonumber(seen[7]) or 0)) / weight_of(seen[1]))
  if redis.call('ZSCORE', 'allot:fair:' .. seen[2], seen[1]) then
    redis.call('ZINCRBY', 'allot:fair:' .. seen[2], more, seen[1])
  else
    redis.call('HINCRBYFLOAT', 'allot:had:' .. seen[2], seen[1], more)
  end
  redis.call('HINCRBYFLOAT', spent_key(seen[2], now), seen[1], string.format('%.6f', spent))
  redis.call('EXPIRE', spent_key(seen[2], now), 2 * DAY_S)
end

-- Which limit one more job of `count` bytes and no estimate would break; nothing when it may come. `most`: jobs that
-- wait, seconds a day, bytes in all, bytes in Redis, share of a queue that has `free` places left. An owner at their share
-- leaves others as much again, so however many they are, a place is left for one more.
local function over_quota(owner, queue, now, count, most, free)
  local function waits(at, what) return tonumber(redis.call('HGET', 'allot:backlog:' .. at, what .. ':' .. owner) or 0) end
  if most[1] > 0 and waits('cpu', 'n') + waits('gpu', 'n') >= most[1] then return 'queued' end
  local own = waits(queue, 'n')
  if most[5] < 1 and own > 0 and own + 1 > most[5] * (own + free) then return 'line' end
  if most[2] > 0 then
    local spent = tonumber(redis.call('HGET', spent_key(queue, now), owner) or 0)
    if spent >= most[2] then return 'spent' end
    if spent + waits(queue, 's') >= most[2] then return 'booked' end
  end
  if most[3] > 0 or most[4] > 0 then
    local kept = redis.call('HMGET', 'allot:kept:' .. owner, 'store', 'redis')
    local store, here = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
    if most[3] > 0 and store + here + count > most[3] then return 'bytes' end
    if most[4] > 0 and here + count > most[4] then return 'share' end
  end
end
