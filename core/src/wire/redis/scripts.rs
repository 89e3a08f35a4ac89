//! What runs inside the server: constant texts, so that a server compiles each of them once.
//!
//! Data travels in `KEYS` and `ARGV` only. The last argument names the request, and an answer ends with it: one that was
//! meant for another request is for none. A script that fails half-way (out of memory, read-only replica, missing rights)
//! has granted, renewed and freed nothing: what could fail comes before the write that counts, or undoes it. Every
//! answer but an error is an array that begins with a word, in printable ASCII: bytes that another client wrote never leave the
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

/// What a script says when the lock is not, or not yet, its caller's. Each script does its work before this, so that
/// what is not needed is not made.
///
/// `get` answers `false` for no key, else at most 8 KiB of its value, else an error table; it does not read a foreign
/// value of half a gigabyte into memory. `count` answers the counter, `false` for none, or a reply to pass on.
macro_rules! tail {
    () => {
        r"local function get(key)
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
local function told(reply)
  if not reply.err then reply[#reply + 1] = ARGV[#ARGV] end
  return reply
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
  return {'held', value, left, type(number) == 'number' and string.format('%.0f', number) or ''}
end
"
    };
}

/// KEYS: lock, fence. ARGV: value, ttl, retention, floor, request.
///
/// The lock is taken first, since that one command also tells whether it is free; a counter that cannot go on gives it
/// back, before anybody else can see it. Our own lock whose counter is gone is taken anew, in a second go.
pub(super) const ACQUIRE: Script = Script {
    name: "acquire",
    text: concat!(
        r"local lock, fence = KEYS[1], KEYS[2]
for go = 1, 2 do
  if redis.call('SET', lock, ARGV[1], 'NX', 'PX', ARGV[2]) then
    local value, number = redis.pcall('GETRANGE', fence, 0, 16), tonumber(ARGV[4])
    local refusal
    local there = value ~= '' or redis.pcall('EXISTS', fence)
    if there == 0 then
      local time = redis.pcall('TIME')
      if time.err then
        refusal = time
      else
        number = math.max(number, 1, time[1] * 1000 + math.floor(time[2] / 1000))
      end
    elseif type(there) == 'table' then
      refusal = there
    elseif type(value) == 'string' and #value <= 16 and string.find(value, '^%d+$') then
      if tonumber(value) > 9007199254740991 then refusal = {'corrupt'} end
      number = math.max(number, value + 1)
    elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
      refusal = value
    else
      refusal = {'corrupt'}
    end
    if number > 9007199254740991 then refusal = refusal or {'exhausted'} end
    if not refusal then
      local token = string.format('%.0f', number)
      local done = redis.pcall('SET', fence, token, 'PX', ARGV[3])
      if done.ok then return {'granted', token, ARGV[5]} end
      refusal = done
    end
    local undone = redis.pcall('DEL', lock)
    if type(undone) == 'table' then return {err = 'ERR the lock stands without a token: ' .. undone.err} end
    if not refusal.err then refusal[2] = ARGV[5] end
    return refusal
  end
",
        tail!(),
        r"  local value = get(lock)
  if failed(value) then return value end
  if not is_of(value, string.sub(ARGV[1], 1, 32)) then return told(seen(lock, fence, value)) end
  local number = count(fence)
  if type(number) == 'table' then return told(number) end
  if number and number > 0 then
    redis.call('PEXPIRE', fence, ARGV[3])
    redis.call('PEXPIRE', lock, string.format('%.0f', math.max(redis.call('PTTL', lock), tonumber(ARGV[2]))))
    return {'granted', string.format('%.0f', number), ARGV[5]}
  end
  redis.call('DEL', lock)
end
"
    ),
    sha1: "856e4fd09485905a691e3e08238c1523a0735444",
};

/// KEYS: lock and fence of each. ARGV: retention, then nonce and ttl of each, request. Answers [`RENEW_PARTS`] for each,
/// filled up with empty ones: one that cannot be renewed must not hide what became of the others, and lists within lists are more
/// than Webdis can pass on. Whoever is asked must be able to write, as in a release.
pub(super) const RENEW: Script = Script {
    name: "renew",
    text: concat!(
        tail!(),
        r"local function renew(lock, fence, nonce, ttl)
  local done = redis.pcall('PEXPIRE', fence, ARGV[1])
  if type(done) ~= 'table' then
    local value = get(lock)
    if failed(value) then return {'error', value.err} end
    if not is_of(value, nonce) then return seen(lock, fence, value) end
    local left = math.max(redis.call('PTTL', lock), tonumber(ttl))
    done = redis.pcall('PEXPIRE', lock, string.format('%.0f', left))
  end
  if type(done) == 'table' then return {'error', done.err} end
  return {'renewed'}
end
local replies = {}
for i = 1, #KEYS / 2 do
  local reply = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], ARGV[2 * i + 1])
  for part = 1, 4 do replies[#replies + 1] = reply[part] or '' end
end
return told(replies)
"
    ),
    sha1: "24832d3f8fbaabf20da6bb4d6b4e1c25ea51ce25",
};

/// How many parts the answer to one of several renewals has.
pub(super) const RENEW_PARTS: usize = 4;

/// KEYS: lock, fence. ARGV: nonce, channel, retention, request. Who may not publish can still release. "Not ours" is a write as well,
/// so that a read-only replica, which may not have our record yet, cannot say it.
pub(super) const RELEASE: Script = Script {
    name: "release",
    text: concat!(
        r"local value = redis.pcall('GETRANGE', KEYS[1], 0, 8191)
if type(value) == 'string' and string.sub(value, 1, 33) == ARGV[1] .. '@' then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[2], KEYS[1])
  return {'released', ARGV[4]}
end
",
        tail!(),
        r"redis.call('PEXPIRE', KEYS[2], ARGV[3])
value = get(KEYS[1])
if failed(value) then return value end
return told(seen(KEYS[1], KEYS[2], value))
"
    ),
    sha1: "5032f0a284b0ef8967c68939c3b5b3d7e828282e",
};

/// KEYS: lock, fence. ARGV: nonce, retention, token, request.
pub(super) const RAISE: Script = Script {
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
return {'raised', token, ARGV[4]}
"
    ),
    sha1: "aa3ad266c8c3a51fe99b7a21db07ba09f2ebc3b8",
};

/// KEYS: lock, fence. ARGV: request.
pub(super) const READ: Script = Script {
    name: "read",
    text: concat!(
        tail!(),
        r"local value = get(KEYS[1])
if failed(value) then return value end
return told(seen(KEYS[1], KEYS[2], value))
"
    ),
    sha1: "35b64cac6b75d84eaf4f8d5db81bfe40a0b5adb6",
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
