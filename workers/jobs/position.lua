-- queue, id: how many are taken up to and with this job; nothing for one that does not wait
return position(ARGV[1], ARGV[2])
