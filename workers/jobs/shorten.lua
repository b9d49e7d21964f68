-- id, until when: its answer has been fetched, and is kept no longer than that
local at = redis.call('ZSCORE', 'allot:expiry', ARGV[1])
if not at or tonumber(at) <= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', 'allot:expiry', ARGV[2], ARGV[1])
redis.call('HSET', key(ARGV[1]), 'expires_at', ARGV[2])
redis.call('HINCRBY', key(ARGV[1]), 'version', 1)
return 1
