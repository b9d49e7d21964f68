-- id: what stands where its record should cannot be read
set_aside(ARGV[1])
