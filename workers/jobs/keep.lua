-- owner, until, most bytes of the owner or 0, share of the store that one owner may have, bytes that are free there, '1'
-- if a job brings them, then name and bytes of each blob: this owner keeps them. 0 while the bytes of one are being
-- deleted, -1 where the owner has too many bytes, -2 where they have too much of the store: those in front of it are kept
-- all the same.
-- allot:sizes: name -> bytes and owner, for as long as they are counted.
-- allot:brought: name -> how often it was kept for a job that does not hold it yet, of blobs that came with jobs alone.
-- Such a blob goes with the last job that holds it; one that was uploaded by itself stays for its time.
local owner, till = ARGV[1], ARGV[2]
local most, share, free = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
for k = 7, #ARGV, 2 do
  if redis.call('EXISTS', 'allot:condemned:' .. ARGV[k]) == 1 then return 0 end
end
for k = 7, #ARGV, 2 do
  local name, size = ARGV[k], ARGV[k + 1]
  local blob, held = 'allot:blob:' .. name, redis.call('HGET', 'allot:blob:' .. name, owner)
  if redis.call('HEXISTS', 'allot:sizes', name) == 0 then
    local kept = redis.call('HMGET', 'allot:kept:' .. owner, 'store', 'redis')
    local stored = tonumber(kept[1] or 0) + tonumber(size)
    if most > 0 and stored + tonumber(kept[2] or 0) > most then return -1 end
    if share < 1 and stored > share * (stored + free) then return -2 end
    redis.call('HSET', 'allot:sizes', name, size .. ' ' .. owner)
    redis.call('HINCRBY', 'allot:kept:' .. owner, 'store', tonumber(size))
  end
  if ARGV[6] ~= '1' then
    redis.call('HDEL', 'allot:brought', name)
  elseif not held or redis.call('HEXISTS', 'allot:brought', name) == 1 then
    redis.call('HINCRBY', 'allot:brought', name, 1)
  end
  if not held or tonumber(held) < tonumber(till) then redis.call('HSET', blob, owner, till) end
  redis.call('ZADD', 'allot:blobs', 'NX', till, name)
end
return 1
