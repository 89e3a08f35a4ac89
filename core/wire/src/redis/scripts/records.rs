//! The scripts that lift a counter, read a record and change a marker.

use super::Script;

/// KEYS: lock, fence, marker, trust. ARGV: nonce, retention, token, loss, request. A node that has rejoined is trusted with this
/// resource from then on, which comes last: trust without the counter would be false.
pub(in crate::redis) const RAISE: Script = Script {
    name: "raise",
    text: concat!(
        tail!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
if not is_of(value, ARGV[1]) then return told(seen(KEYS[1], KEYS[2], value)) end
local number = count(KEYS[2])
if type(number) == 'table' then return told(number) end
local token = string.format('%.0f', math.max(number or 0, tonumber(ARGV[3])))
redis.call('SET', KEYS[2], token, 'PX', ARGV[2])
local marker = redis.call('GET', KEYS[3])
local loss = string.match(marker or '', '^leasehold/1 .* stamp=(%x+) phase=rejoined:')
if loss and loss == ARGV[4] then redis.call('SET', KEYS[4], loss, 'PX', ARGV[2]) end
return {'raised', token, ARGV[5]}
"
    ),
    sha1: "861e1f6047932e8d0149423599e13d279b9e64a0",
};

/// KEYS: lock, fence, for a run the record of it and its completion. ARGV: request. A completion comes before the lock.
pub(in crate::redis) const READ: Script = Script {
    name: "read",
    text: concat!(
        tail!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
local reply = seen(KEYS[1], KEYS[2], value)
local mark = KEYS[4] and get(KEYS[4])
if type(mark) == 'string' then
  local about = get(KEYS[3])
  if type(about) ~= 'string' then about = '' end
  reply = {'marked', mark, redis.call('PTTL', KEYS[4]), about, unpack(reply)}
end
return told(reply)
"
    ),
    sha1: "bff15e64f9b227f84d1fad42970c5167926ad826",
};

/// KEYS: marker. ARGV: the text that must be there, or nothing; the text to write, or nothing; request.
pub(in crate::redis) const MARK: Script = Script {
    name: "mark",
    text: r"local marker = redis.call('GET', KEYS[1]) or ''
if marker ~= ARGV[1] then return {'changed', ARGV[3]} end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return {'marked', ARGV[3]}
",
    sha1: "9302b855646e200a8773182a7923c6ae632f6bce",
};
