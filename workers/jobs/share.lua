-- id, owner, most links of one job, SHA-256 of the secret, milliseconds for which it is good, id of the link, its record
-- (flat JSON list). Answers 1; 0 where the job is not the owner's any more, -1 where it has as many links as one may have.
local id, digest, links, live = ARGV[1], ARGV[4], 'allot:shares:' .. ARGV[1], 0
local seen = redis.call('HMGET', key(id), 'owner', 'discard')
if seen[1] ~= ARGV[2] or seen[2] then return 0 end
local known = redis.call('HGETALL', links)
for i = 1, #known, 2 do
  if redis.call('EXISTS', share_key(known[i + 1])) == 1 then live = live + 1 else redis.call('HDEL', links, known[i]) end
end
if live >= tonumber(ARGV[3]) then return -1 end
redis.call('HSET', share_key(digest), unpack(cjson.decode(ARGV[7])))
redis.call('PEXPIRE', share_key(digest), ARGV[5])
redis.call('HSET', links, ARGV[6], digest)
return 1
