-- id, execution or '' for any that is not alive, now, "again" or "fail", error (JSON)
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
