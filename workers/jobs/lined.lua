-- queue: the ids of all jobs in its lines
local found = {}
for _, owner in ipairs(redis.call('ZRANGE', 'allot:fair:' .. ARGV[1], 0, -1)) do
  for _, form in ipairs(redis.call('ZRANGE', forms_key(ARGV[1], owner), 0, -1)) do
    for _, id in ipairs(redis.call('ZRANGE', line_key(ARGV[1], form, owner), 0, -1)) do found[#found + 1] = id end
  end
end
return found
