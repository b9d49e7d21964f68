-- name, now: forget a blob that nobody holds; 1 when its bytes may go, and until they are gone KEEP answers 0
local blob, refs, now = 'allot:blob:' .. ARGV[1], 'allot:refs:' .. ARGV[1], tonumber(ARGV[2])
local latest = now
if redis.call('SCARD', refs) > 0 then
  latest = now + 300  -- whoever lets go of it brings the next look forward
else
  local holds = redis.call('HGETALL', blob)
  for i = 2, #holds, 2 do latest = math.max(latest, tonumber(holds[i])) end
end
if latest > now then
  redis.call('ZADD', 'allot:blobs', latest, ARGV[1])
  return 0
end
redis.call('DEL', blob)
redis.call('ZREM', 'allot:blobs', ARGV[1])
redis.call('SET', 'allot:condemned:' .. ARGV[1], 1, 'EX', 60)
return 1
