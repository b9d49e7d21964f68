-- id, execution, now, state, fields to set (flat JSON list), result document or '', names of its arrays' blobs
local id, now = ARGV[1], tonumber(ARGV[3])
if not mine(id, ARGV[2]) then
  local seen = redis.call('HMGET', key(id), 'state', 'execution')
  return (seen[1] == ARGV[4] and seen[2] == ARGV[2]) and 1 or 0  -- asked again after a lost answer
end
local fields, digests = cjson.decode(ARGV[5]), cjson.decode(ARGV[7])
if #fields > 0 then redis.call('HSET', key(id), unpack(fields)) end
if ARGV[6] ~= '' then
  local held = cjson.decode(redis.call('HGET', key(id), 'digests'))
  for _, digest in ipairs(digests) do held[#held + 1] = digest end
  if #held > 0 then redis.call('HSET', key(id), 'digests', cjson.encode(held)) end
  hold(id, digests)
  redis.call('SET', 'allot:result:' .. id, ARGV[6])
end
finish(id, ARGV[4], now)
return 1
