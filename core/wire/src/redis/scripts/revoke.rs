//! The mark of a revoked lock.

use super::Script;

/// KEYS: lock, fence. ARGV: nonce, retention, request. Marks the value of a lock, whose length and expiry stay: the first byte
/// becomes `!`, the nonce moves up and takes the place of the `@`. So it is held, and nobody's to renew. A lock that is marked
/// already is written again, for the same reason as a release writes.
pub(in crate::redis) const REVOKE: Script = Script {
    name: "revoke",
    text: concat!(
        r"local marked = '!' .. ARGV[1]
local head = redis.pcall('GETRANGE', KEYS[1], '0', '32')
if head == ARGV[1] .. '@' or head == marked then
  redis.call('SETRANGE', KEYS[1], '0', marked)
  return {'revoked', ARGV[#ARGV]}
end
",
        tail!(),
        r"redis.call('PEXPIRE', KEYS[2], ARGV[2])
local value = get(KEYS[1])
if failed(value) then return value end
return told(seen(KEYS[1], KEYS[2], value))
"
    ),
    sha1: "6c1934a6ee120226e25a6752282ed4894d41feb9",
};
