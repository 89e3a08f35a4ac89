local function leasehold_check(mark, given)
  local token = string.match(given, '^%d+$') and tonumber(given)
  if not token or token > 9007199254740991 then return false, -3 end
  local seen = redis.pcall('GET', mark)
  if type(seen) == 'table' then
    if string.find(seen.err, 'WRONGTYPE', 1, true) then return false, -2 end
    return false, seen
  end
  if not seen then return false, -1 end
  local high = string.match(seen, '^%d+$') and tonumber(seen)
  if not high or high > 9007199254740991 then return false, -2 end
  if high > token then return false, high end
  redis.call('SET', mark, string.format('%.0f', token))
  return true, token
end
