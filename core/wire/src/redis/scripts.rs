//! Scripts that run inside the server: constant texts, so that a server compiles each of them once.
//!
//! Data travels in `KEYS` and `ARGV` only. The last argument names the request, and an answer ends with it: one that was
//! meant for another request is for none. A script that fails half-way (out of memory, read-only replica, missing rights)
//! has granted, renewed and freed nothing: what could fail comes before the write that counts, or undoes it. Every
//! answer but an error is an array that begins with a word, in printable ASCII: bytes that another client wrote never leave the
//! server, only their digest does. Commands used: `GETRANGE`, `EXISTS`, `PTTL`, `TYPE`, `TIME`, `SET`, `PEXPIRE`, `DEL`
//! and `PUBLISH`, in a quorum also `GET` and `INFO`, all of them older than Redis 5.

/// A script and the name that the server gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Script {
    /// Its name, which says what it does.
    pub name: &'static str,
    /// The text that the server runs.
    pub text: &'static str,
    /// SHA-1 of the text in lowercase hexadecimal: the name under which the server keeps it.
    pub sha1: &'static str,
}

/// Every script there is.
pub const SCRIPTS: [Script; 9] = [ACQUIRE, RENEW, RELEASE, RAISE, READ, VOTE, KEEP, FREE, MARK];

/// The end of a script, for a lock that is not, or not yet, its caller's. Each script does its work before this, so
/// that what is not needed is not made.
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

/// The parts of a node's marker, and whether it was written in another run of the server, which a run that was
/// not written down counts as.
macro_rules! marker {
    () => {
        r"local form = '^leasehold/1 quorum=(%x+) max_ttl_ms=(%d+) stamp=(%x+) phase=(%S+) run=(%S*)$'
local quorum, most, stamp, phase, marked = string.match(marker or '', form)
local function restarted(run)
  return run ~= '' and run ~= marked
end
"
    };
}

/// Tells that nobody gets this node's vote, since a record that is missing may have been forgotten along with the marker, or
/// since what stands in its place may be older. The marker is the last key, and the argument before the last is `ask` for the
/// run id or nothing.
macro_rules! in_doubt {
    () => {
        concat!(
            r"local function in_doubt()
  local marker = redis.pcall('GET', KEYS[#KEYS])
  if type(marker) == 'table' then return false end
",
            marker!(),
            r"  if not quorum or phase == 'joining' then return true end
  if ARGV[#ARGV - 1] ~= 'ask' then return false end
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and restarted(string.match(info, 'run_id:(%x+)') or '')
end
"
        )
    };
}

/// A renewal. `$missing` is done before a record that is not ours is looked at.
macro_rules! renew {
    ($missing:literal) => {
        concat!(
            tail!(),
            r"local function renew(lock, fence, nonce, ttl)
  local done = redis.pcall('PEXPIRE', fence, ARGV[1])
  if type(done) ~= 'table' then
    local value = get(lock)
    if failed(value) then return {'error', value.err} end
",
            $missing,
            r"    if not is_of(value, nonce) then return seen(lock, fence, value) end
    local left = math.max(redis.call('PTTL', lock), tonumber(ttl))
    done = redis.pcall('PEXPIRE', lock, string.format('%.0f', left))
  end
  if type(done) == 'table' then return {'error', done.err} end
  return {'renewed'}
end
local replies = {}
for i = 1, math.floor(#KEYS / 2) do
  local reply = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i], ARGV[2 * i + 1])
  for part = 1, 4 do replies[#replies + 1] = reply[part] or '' end
end
return told(replies)
"
        )
    };
}

/// The acquire itself, from where `granted` says what a grant is answered with, and `shown` what may be shown of a record.
///
/// The lock is taken first, since that one command also tells whether it is free; a counter that cannot go on gives it
/// back, before anybody else can see it. Our own lock whose counter is gone is taken anew, in a second go.
macro_rules! acquire {
    ($shown:literal) => {
        concat!(
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
        number = math.max(number, 1, time[1] * 1000000 + time[2])
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
      if done.ok then return granted(token) end
      refusal = done
    end
    local undone = redis.pcall('DEL', lock)
    if type(undone) == 'table' then return {err = 'ERR the lock stands without a token: ' .. undone.err} end
    if not refusal.err then refusal[2] = ARGV[#ARGV] end
    return refusal
  end
",
            tail!(),
            $shown,
            r"  local value = get(lock)
  if failed(value) then return value end
  if not is_of(value, string.sub(ARGV[1], 1, 32)) then return told(shown(seen(lock, fence, value))) end
  local number = count(fence)
  if type(number) == 'table' then return told(number) end
  if number and number > 0 then
    redis.call('PEXPIRE', fence, ARGV[3])
    redis.call('PEXPIRE', lock, string.format('%.0f', math.max(redis.call('PTTL', lock), tonumber(ARGV[2]))))
    return granted(string.format('%.0f', number))
  end
  redis.call('DEL', lock)
end
"
        )
    };
}

/// KEYS: lock, fence. ARGV: value, ttl, retention, floor, request.
pub(super) const ACQUIRE: Script = Script {
    name: "acquire",
    text: concat!(
        r"local function granted(token)
  return {'granted', token, ARGV[#ARGV]}
end
",
        acquire!(
            r"  local function shown(reply) return reply end
"
        )
    ),
    sha1: "c33f8a92fab5929cb1aa2385a30004b45d366b6e",
};

/// KEYS: lock, fence, marker, trust. ARGV: value, ttl, retention, floor, quorum, max_ttl, fresh stamp, stamp that was
/// waited out, `birth` or nothing, `ask` for the run id or nothing, request. What a node of a quorum does with an acquire:
/// see [`admit`](leasehold_core::member::admit).
pub(super) const VOTE: Script = Script {
    name: "vote",
    text: concat!(
        r"local run, doubt = ''
local marker = redis.pcall('GET', KEYS[3])
if type(marker) == 'table' then return marker end
if ARGV[10] == 'ask' or not marker then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' then return info end
  run = string.match(info, 'run_id:(%x+)') or ''
end
",
        marker!(),
        r"local function mark(stamp, phase, run)
  local head = 'leasehold/1 quorum=' .. ARGV[5] .. ' max_ttl_ms=' .. ARGV[6]
  return redis.pcall('SET', KEYS[3], head .. ' stamp=' .. stamp .. ' phase=' .. phase .. ' run=' .. run)
end
if marker and (quorum ~= ARGV[5] or most ~= ARGV[6]) then
  return {'stranger', quorum or '', most or '', ARGV[#ARGV]}
end
if not marker or restarted(run) then
  local time = redis.pcall('TIME')
  if time.err then return time end
  local loss = string.sub(redis.sha1hex(ARGV[7] .. time[1] .. '.' .. time[2]), 1, 32)
  local done = mark(loss, 'joining', run)
  if done.err then return done end
  return {'abstains', loss, ARGV[#ARGV]}
end
local now = 0
if phase ~= 'member' then
  local time = redis.pcall('TIME')
  if time.err then return time end
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if phase == 'joining' then
  if stamp ~= ARGV[8] then return {'abstains', stamp, ARGV[#ARGV]} end
  phase = ARGV[9] == 'birth' and 'member' or 'rejoined:' .. string.format('%.0f', now + ARGV[3])
  local done = mark(stamp, phase, marked)
  if done.err then return done end
end
if phase ~= 'member' then
  local from = tonumber(string.match(phase, '^rejoined:(%d+)$'))
  if not from then return {'stranger', '', '', ARGV[#ARGV]} end
  if now < from and redis.pcall('GET', KEYS[4]) ~= stamp then doubt = stamp end
end
local function granted(token)
  if doubt then return {'doubtful', token, doubt, ARGV[#ARGV]} end
  return {'granted', token, ARGV[#ARGV]}
end
",
        acquire!(
            r"  local function shown(reply)
    if doubt and reply[1] == 'held' then reply[4] = '' end
    return reply
  end
"
        )
    ),
    sha1: "29b1bf4a5a29e6bd8afeb8b383b47deba16e9fb0",
};

/// KEYS: lock and fence of each. ARGV: retention, then nonce and ttl of each, request. Answers [`RENEW_PARTS`] for each,
/// filled up with empty ones: one that cannot be renewed must not hide what became of the others, and lists within lists are more
/// than Webdis can pass on. The server that is asked must be able to write, as in a release.
pub(super) const RENEW: Script =
    Script { name: "renew", text: renew!(""), sha1: "dc13d2582d1c847fb35cd7f62808437d51e993ed" };

/// KEYS: as in a renewal, and the marker. ARGV: as in a renewal, but before the request `ask` for the run id or nothing.
/// Where the node may have forgotten the record, it says that it abstains.
pub(super) const KEEP: Script = Script {
    name: "keep",
    text: concat!(in_doubt!(), renew!("    if not is_of(value, nonce) and in_doubt() then return {'abstains'} end\n")),
    sha1: "eec167c659d410b4f2b15cd620526fa18822bb78",
};

/// How many parts the answer to one of several renewals has.
pub(super) const RENEW_PARTS: usize = 4;

/// A release. `$missing` is done before a record that is not ours is looked at. Who may not publish can still release. "Not
/// ours" is a write as well, so that a read-only replica, which may not have our record yet, cannot say it.
macro_rules! release {
    ($missing:expr) => {
        concat!(
            r"local value = redis.pcall('GETRANGE', KEYS[1], 0, 8191)
if type(value) == 'string' and string.sub(value, 1, 33) == ARGV[1] .. '@' then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[2], KEYS[1])
  return {'released', ARGV[#ARGV]}
end
",
            tail!(),
            r"redis.call('PEXPIRE', KEYS[2], ARGV[3])
value = get(KEYS[1])
if failed(value) then return value end
",
            $missing,
            r"return told(seen(KEYS[1], KEYS[2], value))
"
        )
    };
}

/// KEYS: lock, fence. ARGV: nonce, channel, retention, request.
pub(super) const RELEASE: Script =
    Script { name: "release", text: release!(""), sha1: "787644b248c55ce3d8b074f8d8dfe747b4cbb392" };

/// KEYS: lock, fence, marker. ARGV: nonce, channel, retention, `ask` for the run id or nothing, request. A release at a node
/// of a quorum: where the node may have forgotten the record, it says that it abstains.
pub(super) const FREE: Script = Script {
    name: "free",
    text: release!(concat!(in_doubt!(), "if in_doubt() then return told({'abstains'}) end\n")),
    sha1: "87b4b978812b8017fb3b7485fe96b3e98ddb620c",
};

/// KEYS: lock, fence, marker, trust. ARGV: nonce, retention, token, loss, request. A node that has rejoined is trusted with this
/// resource from then on, which comes last: trust without the counter would be false.
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
local marker = redis.call('GET', KEYS[3])
local loss = string.match(marker or '', '^leasehold/1 .* stamp=(%x+) phase=rejoined:')
if loss and loss == ARGV[4] then redis.call('SET', KEYS[4], loss, 'PX', ARGV[2]) end
return {'raised', token, ARGV[5]}
"
    ),
    sha1: "5da9846a8194256fd4c732ef17aaa9498683ef4c",
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

/// KEYS: marker. ARGV: the text that must be there, or nothing; the text to write, or nothing; request.
pub(super) const MARK: Script = Script {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn every_script_goes_by_the_digest_of_its_text() {
        let digest = |script: &Script| sha1_smol::Sha1::from(script.text).digest().to_string();
        let wrong: Vec<_> = SCRIPTS.iter().filter(|script| script.sha1 != digest(script)).collect();
        let right: Vec<_> = wrong.iter().map(|script| (script.name, digest(script))).collect();
        assert!(right.is_empty(), "{right:#?}");
    }

    #[test]
    fn numbers_and_names_reach_no_text() {
        for script in SCRIPTS {
            assert!(script.text.is_ascii() && !script.text.contains("tostring"), "{}", script.name);
            assert!(!script.text.contains("--"), "a comment would be sent along: {}", script.name);
        }
    }
}
