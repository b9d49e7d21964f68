-- id, now, stamp, keep_s, most workers of one owner: a job that is queued and in no line goes to the end of its own (one of a former release has no form)
local id = ARGV[1]
local seen = redis.call('HMGET', key(id), 'owner', 'queue', 'form', 'priority', 'seconds', 'state')
if seen[6] ~= 'queued' or position(seen[2], id) then return 0 end
redis.call('HSETNX', key(id), 'form', '-')
redis.call('SREM', held_key(seen[1]), id)
join_line(seen[2], id, seen[1], seen[3] or '-', tonumber(seen[4] or 0), tonumber(seen[5] or 0))
feed(seen[2], tonumber(ARGV[2]), ARGV[3], ARGV[4])
return 1
