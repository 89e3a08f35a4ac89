//! The scripts of a waiter that stands in the queue.

use super::Script;

/// KEYS: lock, fence. ARGV: value, ttl, retention, floor, client, number of its ticket, `test` or nothing, queue, request. The
/// acquire of a waiter, which is refused more often than not, and so looks first. Asked for a test, it joins the queue only if a
/// message to the client's channel is received. Who joins behind others need not keep the queue: they do.
/// Where the lock is reserved for another, or free for other libraries, the answer says for how long.
pub(in crate::redis) const JOIN: Script = Script {
    name: "join",
    text: acquire!(
        concat!(
            r"local lock, fence, line, token = KEYS[1], KEYS[2], ARGV[8], ARGV[4]
local ticket, found = ARGV[5] .. ':' .. ARGV[6], redis.pcall('GETRANGE', lock, '0', '8191')
local taken, open
if found == 'reserved:' .. ticket then
  taken = redis.call('SET', lock, ARGV[1], 'PX', ARGV[2])
elseif found == '' then
  taken = redis.call('SET', lock, ARGV[1], 'NX', 'PX', ARGV[2])
end
if taken and found == '' then
",
            serve!(
                "32",
                " or next == ticket",
                r"    local left = redis.pcall('PTTL', line .. '\031hands')
    if type(left) == 'number' and left > 65000 then
      redis.pcall('ZADD', line, first[2], next)
      redis.pcall('PEXPIRE', line, '60000')
      redis.call('DEL', lock)
      served, open = true, left - 65000
      break
    end
",
                "' '",
                ""
            ),
            r"  taken = not served
end
"
        ),
        "{'granted', token, ARGV[9]}",
        "found ~= '' and found or get(lock)",
        concat!(
            r"    local listens = ARGV[7] ~= 'test'
    if not listens then
    ",
            tell!("ARGV[5]", "''"),
            r"    listens = type(heard) == 'number' and heard > 0
    end
    if listens then
      local time = redis.pcall('TIME')
      local added = time.err and time or redis.pcall('ZADD', line, 'NX', string.format('%.0f', time[1] * 1000000 + time[2]), ticket)
      if type(added) == 'number' then
        local place = redis.pcall('ZRANK', line, ticket)
        if added == 0 or place == 0 or type(place) ~= 'number' then redis.pcall('PEXPIRE', line, '60000') end
        if type(place) == 'number' then
          if reply[1] == 'free' then reply = {'reserved', open or redis.call('PTTL', lock)} end
          reply = {'placed', place + 1, unpack(reply)}
        end
      end
    end
"
        )
    ),
    sha1: "15d2cc9a1f59f39afa2fa98af9f85036dff0e8b8",
};

/// KEYS: lock. ARGV: client, number of its ticket, channel, queue. Gives up a ticket, and what is reserved for it.
pub(in crate::redis) const LEAVE: Script = Script {
    name: "leave",
    text: concat!(
        r"local lock, line, ticket = KEYS[1], ARGV[4], ARGV[1] .. ':' .. ARGV[2]
redis.pcall('ZREM', line, ticket)
if redis.pcall('GETRANGE', lock, '0', '8191') == 'reserved:' .. ticket then
",
        serve!("32", " or next == ticket"),
        r"  if not served then
    redis.call('DEL', lock)
    redis.pcall('PUBLISH', ARGV[3], lock)
  end
end
return {'left'}
"
    ),
    sha1: "c9c8de0684fe8745285923c076a383ccddf2ebd4",
};
