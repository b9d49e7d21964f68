-- name, owner, until, bytes, most bytes of the owner or 0, share of the store that one owner may have, bytes that are
-- free there: this owner keeps the blob. 0 while its bytes are being deleted, -1 where the owner has too many bytes,
-- -2 where they have too much of the store. allot:sizes: name -> bytes and owner, for as long as they are counted.
if redis.call('EXISTS', 'allot:condemned:' .. ARGV[1]) == 1 then return 0 end
local blob, held = 'allot:blob:' .. ARGV[1], redis.call('HGET', 'allot:blob:' .. ARGV[1], ARGV[2])
if redis.call('HEXISTS', 'allot:sizes', ARGV[1]) == 0 then
  local size, most, share, free = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
  local kept = redis.call('HMGET', 'allot:kept:' .. ARGV[2], 'store', 'redis')
  local stored = tonumber(kept[1] or 0) + size
  if most > 0 and stored + tonumber(kept[2] or 0) > most then return -1 end
  if share < 1 and stored > share * (stored + free) then return -2 end
  redis.call('HSET', 'allot:sizes', ARGV[1], ARGV[4] .. ' ' .. ARGV[2])
  redis.call('HINCRBY', 'allot:kept:' .. ARGV[2], 'store', size)
end
if not held or tonumber(held) < tonumber(ARGV[3]) then redis.call('HSET', blob, ARGV[2], ARGV[3]) end
redis.call('ZADD', 'allot:blobs', 'NX', ARGV[3], ARGV[1])
return 1
