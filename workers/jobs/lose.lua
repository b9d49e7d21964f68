-- id, execution or '' for any that is not alive, now, "again", "return", "fail" or "stop", error (JSON)
--
-- A job that ran among others is not to blame more than they are: it runs again, alone, whatever was wanted.
local id, now = ARGV[1], tonumber(ARGV[3])
local seen = redis.call('HMGET', key(id), 'state', 'execution', 'cancel', 'among', 'alone')
if seen[1] ~= 'running' and seen[1] ~= 'queued' then return 'ended' end
if ARGV[2] ~= '' then
  if seen[1] == 'running' and seen[2] ~= ARGV[2] then return 'fenced' end
elseif alive(id, seen[2], now) then
  return 'fenced'
end
if seen[3] then
  unqueue(id)
  close(id, 'cancelled', now)
  return 'cancelled'
end
local spared = seen[1] == 'running' and seen[4] and not seen[5]
if ARGV[4] == 'return' then  -- as if it had never been taken
  redis.call('HSET', key(id), 'state', 'queued', 'execution', '')
  redis.call('HINCRBY', key(id), 'attempt', -1)
  tell_state(id)
  return 'queued'
end
if ARGV[4] == 'again' or (spared and ARGV[4] == 'fail') then
  open_stream(id)
  redis.call('HSET', key(id), 'state', 'queued', 'execution', '')
  redis.call('HDEL', key(id), 'progress', 'needs')
  if spared then redis.call('HSET', key(id), 'alone', 1) end
  count(id, 'requeued')
  tell_state(id)
  return spared and 'spared' or 'queued'
end
redis.call('HSET', key(id), 'error', ARGV[5])
close(id, 'failed', now)
return 'failed'
