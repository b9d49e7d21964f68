-- id, execution, kind, data
if not mine(ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', key(ARGV[1]), 'progress', ARGV[4])
tell(ARGV[1], ARGV[3], ARGV[4])
return 1
