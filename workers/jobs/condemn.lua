-- now, names: forget those blobs that nobody holds; answers those whose bytes may go. Until they are gone KEEP answers 0.
local now, gone = tonumber(ARGV[1]), {}
for i = 2, #ARGV do
  local name = ARGV[i]
  local blob, refs, condemned = 'allot:blob:' .. name, 'allot:refs:' .. name, 'allot:condemned:' .. name
  local latest = now
  if redis.call('SCARD', refs) > 0 then
    latest = now + 300  -- whoever lets go of it brings the next look forward
  else
    local holds = redis.call('HGETALL', blob)
    for k = 2, #holds, 2 do latest = math.max(latest, tonumber(holds[k])) end
  end
  if latest > now then
    redis.call('ZADD', 'allot:blobs', latest, name)
  elseif redis.call('EXISTS', condemned) == 0 then  -- else another is deleting them, and it alone may say that it has
    redis.call('DEL', blob)
    local size, owner = string.match(redis.call('HGET', 'allot:sizes', name) or '', '^(%d+) (.+)$')
    if size and size ~= '0' then redis.call('HINCRBY', 'allot:kept:' .. owner, 'store', '-' .. size) end
    redis.call('HDEL', 'allot:sizes', name)
    redis.call('HDEL', 'allot:brought', name)
    redis.call('ZREM', 'allot:blobs', name)
    redis.call('SET', condemned, 1, 'EX', 60)
    gone[#gone + 1] = name
  end
end
return gone
