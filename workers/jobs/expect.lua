-- id, execution, what the job needs (JSON)
if not mine(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', key(ARGV[1]), 'needs', ARGV[3])
return 1
