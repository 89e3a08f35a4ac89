local passed, reply = leasehold_check(KEYS[1], ARGV[1])
return reply
