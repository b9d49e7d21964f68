-- id, now
local id, now = ARGV[1], tonumber(ARGV[2])
local state = redis.call('HGET', key(id), 'state')
if state == 'queued' then
  unqueue(id)
  close(id, 'cancelled', now)
elseif state == 'running' and redis.call('HSETNX', key(id), 'cancel', now) == 1 then
  open_stream(id)
  tell(id, 'state', cjson.encode({state = 'running', cancelling = true}))
end
return state
