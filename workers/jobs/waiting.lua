-- queue: how many jobs wait
return waiting(ARGV[1])
