-- name, owner, until: this owner keeps the blob; 0 while its bytes are being deleted
if redis.call('EXISTS', 'allot:condemned:' .. ARGV[1]) == 1 then return 0 end
local blob, held = 'allot:blob:' .. ARGV[1], redis.call('HGET', 'allot:blob:' .. ARGV[1], ARGV[2])
if not held or tonumber(held) < tonumber(ARGV[3]) then redis.call('HSET', blob, ARGV[2], ARGV[3]) end
redis.call('ZADD', 'allot:blobs', 'NX', ARGV[3], ARGV[1])
return 1
