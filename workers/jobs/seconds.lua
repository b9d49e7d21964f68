-- how many numbers each has, names of strings of histograms. Answers the numbers of each, none of one that is not there.
local words, found = {}, {}
for slot = 0, tonumber(ARGV[1]) - 1 do
  words[3 * slot + 1], words[3 * slot + 2], words[3 * slot + 3] = 'GET', 'i64', '#' .. slot
end
for i = 2, #ARGV do
  local there = redis.call('EXISTS', ARGV[i]) == 1
  found[i - 1] = there and redis.call('BITFIELD_RO', ARGV[i], unpack(words)) or {}
end
return found
