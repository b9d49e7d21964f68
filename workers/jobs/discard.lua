-- id, now
local id, now = ARGV[1], tonumber(ARGV[2])
local seen = redis.call('HMGET', key(id), 'state', 'owner')
if seen[1] == 'running' then
  redis.call('HSET', key(id), 'discard', 1)
  redis.call('HSETNX', key(id), 'cancel', now)
  redis.call('ZREM', 'allot:jobs:' .. seen[2], id)
  open_stream(id)
  tell(id, 'state', cjson.encode({state = 'running', cancelling = true}))
  publish(id, 'gone', 0)  -- for its owner it is
elseif seen[1] then
  if seen[1] == 'queued' then unqueue(id) end
  purge(id, now)
end
return seen[1]
