local passed, reply = leasehold_check(KEYS[1], ARGV[1])
if not passed and reply == -1 then
  reply = tonumber(ARGV[1])
  redis.call('SET', KEYS[1], string.format('%.0f', reply))
end
return reply
