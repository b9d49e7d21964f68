-- now, tombstone ttl, at most so many
local ids = redis.call('ZRANGEBYSCORE', 'allot:expiry', '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local record = record_of(id)
  if redis.call('EXISTS', key(id)) == 1 and not sound(record) then
    set_aside(id)
  else
    if record.owner then redis.call('SET', 'allot:tomb:' .. id, record.owner, 'EX', ARGV[2]) end
    purge(id, tonumber(ARGV[1]))
  end
end
return #ids
