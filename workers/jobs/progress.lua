-- id, execution, then of each report: milliseconds since 1970, kind, data
local id, MOST = ARGV[1], 300
if not mine(id, ARGV[2]) then return 0 end
open_stream(id)

-- Every second report goes, so that the curve keeps its shape; states, and the newest report of each kind, stay.
local function thin()
  local all = redis.call('XRANGE', events_key(id), '-', '+')
  redis.call('DEL', events_key(id))
  local odd, newest = false, {}
  for i = #all, 1, -1 do newest[all[i][2][2]] = newest[all[i][2][2]] or i end
  for i, one in ipairs(all) do
    local kind = one[2][2]
    if kind ~= 'state' then odd = not odd end
    if kind == 'state' or odd or newest[kind] == i then event(id, one[1], kind, one[2][4]) end
  end
end

if redis.call('XLEN', events_key(id)) >= MOST then thin() end
for i = 3, #ARGV, 3 do
  local last = redis.call('XREVRANGE', events_key(id), '+', '-', 'COUNT', 1)[1][1]
  local at = tonumber(string.match(last, '^%d+'))
  event(id, tonumber(ARGV[i]) > at and ARGV[i] .. '-0' or '*', ARGV[i + 1], ARGV[i + 2])
end
redis.call('HSET', key(id), 'progress', ARGV[#ARGV])
publish(id, 'running', redis.call('HINCRBY', key(id), 'version', 1))
return 1
