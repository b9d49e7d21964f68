-- now, tombstone ttl, at most so many
local ids = redis.call('ZRANGEBYSCORE', 'allot:expiry', '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local owner = redis.call('HGET', key(id), 'owner')
  if owner then redis.call('SET', 'allot:tomb:' .. id, owner, 'EX', ARGV[2]) end
  purge(id, tonumber(ARGV[1]))
end
return #ids
