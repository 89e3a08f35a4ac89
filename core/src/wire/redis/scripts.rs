//! What runs inside the server: constant texts, so that a server compiles each of them once.
//!
//! Data travels in `KEYS` and `ARGV` only. Within a script the fence is written first and the lock last, so one that
//! fails half-way (out of memory, read-only replica, missing rights) has granted, renewed and freed nothing. Every
//! answer is an array that begins with a word, in printable ASCII: bytes that another client wrote never leave the
//! server, only their digest does. Commands used: `GETRANGE`, `EXISTS`, `PTTL`, `TYPE`, `TIME`, `SET`, `PEXPIRE`, `DEL`
//! and `PUBLISH`, all of them older than Redis 5.

/// A script and the name that the server gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Script {
    /// What it does.
    pub name: &'static str,
    /// What the server runs.
    pub text: &'static str,
    /// SHA-1 of the text in lowercase hexadecimal: the name under which the server keeps it.
    pub sha1: &'static str,
}

/// Every script there is.
pub const SCRIPTS: [Script; 5] = [ACQUIRE, RENEW, RELEASE, RAISE, READ];

/// What all scripts begin with.
///
/// `get` answers `false` for no key, else at most 8 KiB of its value, else an error table; it does not read a foreign
/// value of half a gigabyte into memory. `count` answers the counter, `false` for none, or a reply to pass on.
macro_rules! head {
    () => {
        r"local function text(number) return string.format('%.0f', number) end
local function get(key)
  local value = redis.pcall('GETRANGE', key, 0, 8191)
  if value == '' and redis.call('EXISTS', key) == 0 then return false end
  return value
end
local function failed(value)
  return type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true)
end
local function is_of(value, nonce)
  return type(value) == 'string' and string.sub(value, 1, 33) == nonce .. '@'
end
local function count(fence)
  local value = get(fence)
  if not value or failed(value) then return value end
  local digits = type(value) == 'string' and #value <= 16 and string.find(value, '^%d+$')
  local number = digits and tonumber(value)
  if not number or number > 9007199254740991 then return {'corrupt'} end
  return number
end
local function seen(lock, fence, value)
  if not value then return {'free'} end
  local left = redis.call('PTTL', lock)
  if type(value) ~= 'string' then
    local kind = redis.call('TYPE', lock)
    return {'foreign', type(kind) == 'table' and kind.ok or kind, left}
  end
  if #value > 8000 or string.sub(value, 33, 33) ~= '@' or not string.find(value, '^[0-9a-f]+@[!-~]+$') then
    return {'foreign', redis.sha1hex(value), left}
  end
  local number = count(fence)
  return {'held', value, left, type(number) == 'number' and text(number) or ''}
end
"
    };
}

/// KEYS: lock, fence. ARGV: `<nonce>@<owner>;`, ttl, retention, floor, and with data `;<data>`.
pub(super) const ACQUIRE: Script = Script {
    name: "acquire",
    text: concat!(
        head!(),
        r"local lock, fence, start = KEYS[1], KEYS[2], ARGV[1]
local value = get(lock)
if failed(value) then return value end
local ours = is_of(value, string.sub(start, 1, 32))
if value and not ours then return seen(lock, fence, value) end
local number = count(fence)
if type(number) == 'table' then return number end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not ours or not number or number < 1 then
  number = math.max((number or 0) + 1, tonumber(ARGV[4]), now)
  if number > 9007199254740991 then return {'exhausted'} end
end
redis.call('SET', fence, text(number), 'PX', ARGV[3])
if ours then
  redis.call('PEXPIRE', lock, text(math.max(redis.call('PTTL', lock), tonumber(ARGV[2]))))
else
  redis.call('SET', lock, start .. text(now) .. (ARGV[5] or ''), 'PX', ARGV[2])
end
return {'granted', text(number)}
"
    ),
    sha1: "978d47f656b1ab1f76134c6d5c8a745a66e8d2d6",
};

/// KEYS: lock and fence of each. ARGV: retention, then nonce and ttl of each. Answers a list: one that cannot be
/// renewed must not hide what became of the others.
pub(super) const RENEW: Script = Script {
    name: "renew",
    text: concat!(
        head!(),
        r"local function renew(lock, fence, nonce, ttl)
  local value = get(lock)
  if failed(value) then return {'error', value.err} end
  if not is_of(value, nonce) then return seen(lock, fence, value) end
  local done = redis.pcall('PEXPIRE', fence, ARGV[1])
  if type(done) ~= 'table' then
    done = redis.pcall('PEXPIRE', lock, text(math.max(redis.call('PTTL', lock), tonumber(ttl))))
  end
  if type(done) == 'table' then return {'error', done.err} end
  return {'renewed'}
end
local replies = {}
for i = 1, #KEYS / 2 do
  replies[i] = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], ARGV[2 * i + 1])
end
return replies
"
    ),
    sha1: "df87f048e23b2e97376267fa2a1c05e91f9ef016",
};

/// KEYS: lock, fence. ARGV: nonce, retention, channel. Who may not publish can still release.
pub(super) const RELEASE: Script = Script {
    name: "release",
    text: concat!(
        head!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
if not is_of(value, ARGV[1]) then return seen(KEYS[1], KEYS[2], value) end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[3], KEYS[1])
return {'released'}
"
    ),
    sha1: "19e87dbbd233435e3c612413ca20cb6e4cec29bd",
};

/// KEYS: lock, fence. ARGV: nonce, retention, token.
pub(super) const RAISE: Script = Script {
    name: "raise",
    text: concat!(
        head!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
if not is_of(value, ARGV[1]) then return seen(KEYS[1], KEYS[2], value) end
local number = count(KEYS[2])
if type(number) == 'table' then return number end
number = math.max(number or 0, tonumber(ARGV[3]))
redis.call('SET', KEYS[2], text(number), 'PX', ARGV[2])
return {'raised', text(number)}
"
    ),
    sha1: "3d218e9d66ce977ebbdf40fc01e71effae30edf3",
};

/// KEYS: lock, fence.
pub(super) const READ: Script = Script {
    name: "read",
    text: concat!(
        head!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
return seen(KEYS[1], KEYS[2], value)
"
    ),
    sha1: "66084f210995996b277965a5ea51fc81388cfd6d",
};

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_script_goes_by_the_digest_of_its_text() {
        for script in SCRIPTS {
            let digest = sha1_smol::Sha1::from(script.text).digest().to_string();
            assert_eq!(script.sha1, digest, "{}", script.name);
        }
    }

    #[test]
    fn numbers_and_names_reach_no_text() {
        for script in SCRIPTS {
            assert!(script.text.is_ascii() && !script.text.contains("tostring"), "{}", script.name);
            assert!(!script.text.contains("--"), "a comment would be sent along: {}", script.name);
        }
    }
}
