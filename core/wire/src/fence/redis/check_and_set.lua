local passed, reply = leasehold_check(KEYS[1], ARGV[1])
if passed then redis.call('SET', KEYS[2], ARGV[2]) end
return reply
