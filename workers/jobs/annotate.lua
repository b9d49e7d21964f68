-- id, owner, reference of the note (JSON), name of its blob. Answers 1, or 0 where the job is not the owner's any more.
local id, name = ARGV[1], ARGV[4]
local seen = redis.call('HMGET', key(id), 'owner', 'discard', 'note_name', 'digests', 'state')
if seen[1] ~= ARGV[2] or seen[2] then return 0 end
local held, kept, again = cjson.decode(seen[4] or '[]'), {}, false
local dropped = seen[3] == false  -- the note before goes, once; an input may have the same bytes, and stays
for _, digest in ipairs(held) do
  if not dropped and digest == seen[3] then
    dropped = true
  else
    kept[#kept + 1] = digest
    again = again or digest == seen[3]
  end
end
if seen[3] and not again and seen[3] ~= name then
  release(id, seen[3], redis.call('TIME')[1])
end
kept[#kept + 1] = name
hold(id, {name})
has_brought({name})
redis.call('HSET', key(id), 'note', ARGV[3], 'note_name', name, 'digests', cjson.encode(kept))
publish(id, seen[5], redis.call('HINCRBY', key(id), 'version', 1))
return 1
