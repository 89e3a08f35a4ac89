//! Scripts that run inside the server: constant texts, so that a server compiles each of them once.
//!
//! Data travels in `KEYS` and `ARGV` only. The queue of waiters is in `ARGV`: it is there on single servers alone, and a user
//! without the right to its key can lock all the same. The last argument names the request, and an answer ends with it: one that was
//! meant for another request is for none. A script that fails half-way (out of memory, read-only replica, missing rights)
//! has granted, renewed and freed nothing: what could fail comes before the write that counts, or undoes it. Every
//! answer but an error and the number of a release is an array that begins with a word, in printable ASCII: bytes that another
//! client wrote never leave the server, only their digest does. Commands used: `GETRANGE`, `EXISTS`, `PTTL`, `TYPE`, `TIME`,
//! `SET`, `PEXPIRE`, `DEL` and `PUBLISH`, for a revoke `SETRANGE`, in a quorum also `GET` and `INFO`, all of them older than Redis 5; for waiters in the queue
//! `PUBSUB NUMSUB`, `ZADD`, `ZRANK`, `ZREM` and `ZPOPMIN`, the last of which came with it.

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
pub const SCRIPTS: [Script; 16] = [
    ACQUIRE, RENEW, RELEASE, RAISE, READ, RUN, FINISH, VOTE, KEEP, FREE, RUN_VOTE, CONCLUDE, MARK, JOIN, LEAVE, REVOKE,
];

/// Functions for the branches that are not taken as a rule. Each script does its common branch before this, so that
/// what is not needed is not made.
///
/// `get` answers `false` for no key, else at most 8 KiB of its value, else an error table; it does not read a foreign
/// value of half a gigabyte into memory. `count` answers the counter, `false` for none, or a reply to pass on. Transactions
/// that find the lock taken have counted all the same, so a counter at the very top may be a little above it: that is the top.
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
  if not number or number > 9007199255740991 then return {'corrupt'} end
  return math.min(number, 9007199254740991)
end
local function seen(lock, fence, value)
  local number = count(fence)
  number = type(number) == 'number' and string.format('%.0f', number) or ''
  if not value or type(value) == 'string' and string.sub(value, 1, 9) == 'reserved:' then return {'free', number} end
  local left = redis.call('PTTL', lock)
  if type(value) ~= 'string' then
    local kind = redis.call('TYPE', lock)
    return {'foreign', type(kind) == 'table' and kind.ok or kind, left}
  end
  local ours = string.sub(value, 33, 33) == '@' and string.find(value, '^[0-9a-f]+@[!-~]+$')
  ours = ours or string.find(value, '^!' .. string.rep('[0-9a-f]', 32) .. '[!-~]+$')
  if #value > 8000 or not ours then return {'foreign', redis.sha1hex(value), left} end
  return {'held', value, left, number}
end
"
    };
}

/// Takes the marker to pieces.
macro_rules! marker {
    () => {
        r"local form = '^leasehold/1 quorum=(%x+) max_ttl_ms=(%d+) stamp=(%x+) phase=(%S+) run=(%S*)$'
local quorum, most, stamp, phase, marked = string.match(marker or '', form)
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
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  return run ~= '' and run ~= marked
end
"
        )
    };
}

/// A renewal. `$missing` is done before a record that is not ours is looked at.
macro_rules! renew {
    ($missing:expr) => {
        concat!(
            r"local replies, last = {}, 0
for i = 1, math.floor(#KEYS / 2) do
  local lock, nonce, ttl, reply = KEYS[2 * i - 1], ARGV[2 * i], ARGV[2 * i + 1]
  local done = redis.pcall('PEXPIRE', KEYS[2 * i], ARGV[1])
  if type(done) ~= 'table' then
    if redis.pcall('GETRANGE', lock, '0', '32') == nonce .. '@' then
      local left = redis.call('PTTL', lock)
      if left > tonumber(ttl) then ttl = string.format('%.0f', left) end
      done = redis.pcall('PEXPIRE', lock, ttl)
    else
",
            tail!(),
            r"      local value = get(lock)
      if failed(value) then
        done = value
      else
",
            $missing,
            r"        reply = reply or seen(lock, KEYS[2 * i], value)
      end
    end
  end
  if type(done) == 'table' then reply = {'error', done.err} end
  if reply then
    for part = 1, 4 do replies[last + part] = reply[part] or '' end
  else
    replies[last + 1], replies[last + 2], replies[last + 3], replies[last + 4] = 'renewed', '', '', ''
  end
  last = last + 4
end
replies[last + 1] = ARGV[#ARGV]
return replies
"
        )
    };
}

/// Sends a message to the client `$client`, and tells in `heard` how many received it, or why it could not be sent.
///
/// Only who subscribed to that very channel counts: `PUBLISH` also counts those who listen to a pattern, such as a tool that
/// shows all messages, and with it every waiter would seem alive. A server that refuses `PUBSUB` is believed as far as
/// `PUBLISH` goes, as the doctor says.
macro_rules! tell {
    ($client:literal, $message:expr) => {
        concat!(
            "local channel = 'leasehold\\031client\\031' .. ",
            $client,
            "
    local heard = redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and redis.pcall('PUBLISH', channel, ",
            $message,
            ") or 0
"
        )
    };
}

/// Passes a lock that ends to the first in the queue who is alive: `served` tells if it is reserved now. A ticket whose client does
/// not listen is dropped; its client joins again with its next poll. Where the message is refused, the
/// lock is simply freed. `$most` bounds the search, and `$own` is the ticket that asks, whose turn it may be.
macro_rules! serve {
    ($most:literal, $own:literal) => {
        serve!($most, $own, "", "' '", "")
    };
    ($most:literal, $own:literal, $before:literal, $when:literal, $instead:literal) => {
        concat!(
            "  local served
  for _ = 1, ",
            $most,
            r" do
    local first = redis.pcall('ZPOPMIN', line)
    local next = first[1]
    if not next",
            $own,
            r" then break end
",
            $before,
            "    ",
            tell!("string.sub(next, 1, 32)", concat!("string.sub(next, 34) .. ", $when, " .. lock")),
            r"    if type(heard) == 'table' then break end
    if heard > 0 then
",
            $instead,
            r"      served = redis.pcall('SET', lock, 'reserved:' .. next, 'PX', '500').ok
      break
    end
  end
"
        )
    };
}

/// Passes a lock that is released to the first in the queue. Where it has passed from hand to hand for 5 s, it is free for 50 ms before: the
/// first in the queue keeps its place, and is told to come then. The time that a key beside the queue has left is the clock: it is above 65 s
/// while the lock is free for others, and at most 60 s once that is due again.
macro_rules! pass_on {
    () => {
        serve!(
            "32",
            "",
            r"    local hands = line .. '\031hands'
    local left = redis.pcall('PTTL', hands)
    local opens = type(left) == 'number' and left >= 0 and left <= 60000
",
            "(opens and '+50 ' or ' ')",
            r"      if opens or left == -2 then redis.pcall('SET', hands, '', 'PX', opens and '65050' or '65000') end
      if opens and redis.pcall('ZADD', line, first[2], next) == 1 then
        redis.pcall('PEXPIRE', line, '60000')
        redis.call('DEL', lock)
        served = true
        break
      end
"
        )
    };
}

/// Takes the lock if it is free.
macro_rules! take {
    () => {
        r"local lock, fence, token = KEYS[1], KEYS[2], ARGV[4]
local taken = redis.call('SET', lock, ARGV[1], 'NX', 'PX', ARGV[2])
"
    };
}

/// The acquire itself. `$take` tries to take the lock, `$granted` answers a grant of `token`, `$found` is the value that is in
/// the way, and `$shown` changes what may be shown of a record.
///
/// The lock is taken first, since that one command also tells whether it is free; a counter that cannot go on gives it
/// back, before anybody else can see it. A counter of fewer than 16 digits is younger than the clock: it was lost, and counted
/// up since, or left to us by a lost one. The server's clock passes it, as it does where there is none. Our own lock mints
/// nothing, but its counter is lifted to the floor all the same.
macro_rules! acquire {
    ($take:expr, $granted:literal, $shown:expr) => {
        acquire!($take, $granted, "get(lock)", $shown)
    };
    ($take:expr, $granted:literal, $found:literal, $shown:expr) => {
        concat!(
            $take,
            r"if taken then
  local value = redis.pcall('GETRANGE', fence, '0', '16')
  if type(value) == 'string' and #value == 16 and not string.find(value, '%D') and tonumber(value) < 9007199254740991 then
    if tonumber(value) >= tonumber(token) then token = string.format('%.0f', value + 1) end
    if redis.pcall('SET', fence, token, 'PX', ARGV[3]).ok then return ",
            $granted,
            r" end
    token = ARGV[4]
  end
end
",
            tail!(),
            "if not taken then
  local value = ",
            $found,
            r"
  if failed(value) then return value end
  if not is_of(value, string.sub(ARGV[1], 1, 32)) then
    local reply = seen(lock, fence, value)
",
            $shown,
            r"    return told(reply)
  end
end
local refusal
local old = count(fence)
if type(old) == 'table' then
  refusal = old
else
  local number = math.max((old or 0) + (taken and 1 or 0), tonumber(token))
  if not old or old < 1000000000000000 then
    local time = redis.pcall('TIME')
    if time.err then refusal = time else number = math.max(number, 1, time[1] * 1000000 + time[2]) end
  end
  if number > 9007199254740991 then refusal = refusal or {'exhausted'} end
  token = string.format('%.0f', number)
  if not refusal and number == old then
    redis.call('PEXPIRE', fence, ARGV[3])
  elseif not refusal then
    local done = redis.pcall('SET', fence, token, 'PX', ARGV[3])
    if done.err then refusal = done end
  end
end
if refusal then
  local undone = redis.pcall('DEL', lock)
  if type(undone) == 'table' then return {err = 'ERR the lock stands without a token: ' .. undone.err} end
  return told(refusal)
end
if not taken then
  redis.call('PEXPIRE', lock, string.format('%.0f', math.max(redis.call('PTTL', lock), tonumber(ARGV[2]))))
end
return ",
            $granted,
            "
"
        )
    };
}

/// KEYS: lock, fence. ARGV: value, ttl, retention, floor, request.
pub(super) const ACQUIRE: Script = Script {
    name: "acquire",
    text: acquire!(take!(), "{'granted', token, ARGV[5]}", ""),
    sha1: "0668a77bf70fd8873e87fa543e8dd5f2106c3cd7",
};

/// Ends the acquire of a run whose work is done. The completion is the last key, and the record of its run the one before.
macro_rules! unless_done {
    () => {
        r"local mark = redis.pcall('GETRANGE', KEYS[#KEYS], '0', '8191')
if type(mark) == 'table' then return mark end
if mark ~= '' then
  local about = redis.pcall('GETRANGE', KEYS[#KEYS - 1], '0', '8191')
  if type(about) == 'table' then about = '' end
  return {'done', mark, redis.call('PTTL', KEYS[#KEYS]), about, ARGV[#ARGV]}
end
"
    };
}

/// KEYS: lock, fence, record of the run, completion. ARGV: as in an acquire.
pub(super) const RUN: Script = Script {
    name: "run",
    text: concat!(unless_done!(), acquire!(take!(), "{'granted', token, ARGV[5]}", "")),
    sha1: "9f6491de0841e42f713be121e214c71caab13be8",
};

/// The acquire at a node of a quorum: see [`admit`](leasehold_core::member::admit). `$trusted` tells that what was
/// asked for is trusted although the node has lost its data, and `$done` comes before the acquire itself.
macro_rules! vote {
    ($trusted:literal, $done:expr) => {
        concat!(
            r"local run, doubt
local marker = redis.pcall('GET', KEYS[3])
if type(marker) == 'table' then return marker end
if ARGV[10] == 'ask' or not marker then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' then return info end
  run = string.match(info, 'run_id:(%x+)') or ''
else
  run = ARGV[10]
end
",
            marker!(),
            r"if marker and (quorum ~= ARGV[5] or most ~= ARGV[6]) then
  return {'stranger', quorum or '', most or '', ARGV[11]}
end
if phase ~= 'member' or (run ~= '' and run ~= marked) then
  local time = redis.pcall('TIME')
  if time.err then return time end
  local function mark(stamp, phase, run)
    local head = 'leasehold/1 quorum=' .. ARGV[5] .. ' max_ttl_ms=' .. ARGV[6]
    return redis.pcall('SET', KEYS[3], head .. ' stamp=' .. stamp .. ' phase=' .. phase .. ' run=' .. run)
  end
  if not marker or (run ~= '' and run ~= marked) then
    local loss = string.sub(redis.sha1hex(ARGV[7] .. time[1] .. '.' .. time[2]), 1, 32)
    local done = mark(loss, 'joining', run)
    if done.err then return done end
    return {'abstains', loss, ARGV[11]}
  end
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if phase == 'joining' then
    if stamp ~= ARGV[8] then return {'abstains', stamp, ARGV[11]} end
    phase = ARGV[9] == 'birth' and 'member' or 'rejoined:' .. string.format('%.0f', now + ARGV[3])
    local done = mark(stamp, phase, marked)
    if done.err then return done end
  end
  if phase ~= 'member' then
    local from = tonumber(string.match(phase, '^rejoined:(%d+)$'))
    if not from then return {'stranger', '', '', ARGV[11]} end
    if now < from and not (",
            $trusted,
            r") then doubt = stamp end
  end
end
",
            $done,
            acquire!(
                take!(),
                "doubt and {'doubtful', token, doubt, ARGV[11]} or {'granted', token, ARGV[11]}",
                "    if doubt and reply[1] == 'held' then reply[4] = '' end\n"
            )
        )
    };
}

/// KEYS: lock, fence, marker, trust. ARGV: value, ttl, retention, floor, quorum, max_ttl, fresh stamp, stamp that was
/// waited out, `birth` or nothing, `ask` for the run id or nothing or the run id, request.
pub(super) const VOTE: Script = Script {
    name: "vote",
    text: vote!("redis.pcall('GET', KEYS[4]) == stamp", ""),
    sha1: "fa7cb7a72a0abd7185afe5398866c6b898a7ea3e",
};

/// KEYS: lock, fence, marker, record of the run, completion. ARGV: as in a vote. A counter that was raised after a loss says nothing of completions, so
/// the node is in doubt for as long as a lost completion might stand.
pub(super) const RUN_VOTE: Script =
    Script { name: "run_vote", text: vote!("false", unless_done!()), sha1: "39d6cc3ab6eaf1a8ae6d17c51e2f77caddb7ea84" };

/// KEYS: lock and fence of each. ARGV: retention, then nonce and ttl of each, request. Answers [`RENEW_PARTS`] for each,
/// filled up with empty ones: one that cannot be renewed must not hide what became of the others, and lists within lists are more
/// than Webdis can pass on. The server that is asked must be able to write, as in a release.
pub(super) const RENEW: Script =
    Script { name: "renew", text: renew!(""), sha1: "b11d8b9be8babb6dc93af5d37e66e310696668da" };

/// KEYS: as in a renewal, and the marker. ARGV: as in a renewal, but before the request `ask` for the run id or nothing.
/// Where the node may have forgotten the record, it says that it abstains.
pub(super) const KEEP: Script = Script {
    name: "keep",
    text: renew!(concat!(in_doubt!(), "        if in_doubt() then reply = {'abstains'} end\n")),
    sha1: "f75a0909c0bbb7b043a3a3973ddfc1380ae0be85",
};

/// How many parts the answer to one of several renewals has.
pub(super) const RENEW_PARTS: usize = 4;

/// A release, answered with the number of the request alone, which costs the server less than an array. `$free` frees the lock, and
/// `$missing` is done before a record that is not ours is looked at. A user without the right to publish can still release. "Not
/// ours" is a write as well, so that a read-only replica, which may not have our record yet, cannot say it.
macro_rules! release {
    ($free:expr, $missing:expr) => {
        concat!(
            r"local head = redis.pcall('GETRANGE', KEYS[1], '0', '32')
if head == ARGV[1] .. '@' or head == '!' .. ARGV[1] then
",
            $free,
            r"  return ARGV[#ARGV]
end
",
            tail!(),
            r"redis.call('PEXPIRE', KEYS[2], ARGV[3])
local value = get(KEYS[1])
if failed(value) then return value end
",
            $missing,
            r"return told(seen(KEYS[1], KEYS[2], value))
"
        )
    };
}

/// Frees a lock, and tells all waiters.
macro_rules! free {
    () => {
        r"  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[2], KEYS[1])
"
    };
}

/// KEYS: lock, fence. ARGV: nonce, channel, retention, the queue or nothing, request.
pub(super) const RELEASE: Script = Script {
    name: "release",
    text: release!(
        concat!(
            "  local lock, line, passed = KEYS[1], ARGV[4]\n  if line ~= '' and redis.pcall('EXISTS', line) ~= 0 then\n",
            pass_on!(),
            "  passed = served\n  end\n  if not passed then\n",
            free!(),
            "  end\n"
        ),
        ""
    ),
    sha1: "98e12826c18f89802065eebd181737f928227bd9",
};

/// KEYS: lock, fence, marker. ARGV: nonce, channel, retention, `ask` for the run id or nothing, request. A release at a node
/// of a quorum: where the node may have forgotten the record, it says that it abstains.
pub(super) const FREE: Script = Script {
    name: "free",
    text: release!(free!(), concat!(in_doubt!(), "if in_doubt() then return told({'abstains'}) end\n")),
    sha1: "d345d93a81c71ce051633b32ec93a57a5d06e382",
};

/// The finish of a run. What may be refused comes before the write that counts: the old completion and the record of its run are
/// removed first, which needs the same right as freeing the lock, and lets the rest of the script write in a server that is full. The
/// new record is written first, since it alone says nothing. `$missing` is done before
/// a record that is not ours is looked at. A counter that has moved since the grant shows another grant, but for one that
/// transactions have moved above the top. A completion of our own was written by an earlier send.
macro_rules! finish {
    ($free:expr, $missing:expr) => {
        concat!(
            r"local lock, fence, about, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local head = redis.pcall('GETRANGE', lock, '0', '32')
local is_granted = head == ARGV[1] .. '@' or head == '!' .. ARGV[1]
local counter = redis.pcall('GETRANGE', fence, '0', '16')
if ARGV[6] == '9007199254740991' and type(counter) == 'string' and counter > ARGV[6] then counter = ARGV[6] end
if is_granted and counter == ARGV[6] then
  redis.call('DEL', mark, about)
  local done = ARGV[7] == '' or redis.pcall('SET', about, ARGV[7], 'PX', ARGV[5])
  if done ~= true and done.err then return done end
  done = redis.pcall('SET', mark, ARGV[4], 'PX', ARGV[5])
  if done.err then return done end
",
            $free,
            r"  redis.pcall('PEXPIRE', fence, ARGV[3])
  return {'finished', ARGV[#ARGV]}
end
",
            tail!(),
            r"redis.call('PEXPIRE', fence, ARGV[3])
local value = get(mark)
if failed(value) then return value end
if is_of(value, ARGV[1]) then return told({'finished'}) end
value = get(lock)
if failed(value) then return value end
",
            $missing,
            r"return told(seen(lock, fence, value))
"
        )
    };
}

/// KEYS: lock, fence, record of the run, completion. ARGV: nonce, channel, retention, the completion's value, for how long it stands,
/// the counter of the grant, the record or nothing, the queue or nothing, request. All who wait for the end of the work are told.
pub(super) const FINISH: Script = Script {
    name: "finish",
    text: finish!(
        concat!(
            "  local line = ARGV[8]\n",
            serve!("line == '' and 0 or 32", ""),
            "  if not served then redis.call('DEL', lock) end\n  redis.pcall('PUBLISH', ARGV[2], lock)\n"
        ),
        ""
    ),
    sha1: "dde93c565dc10a8971a41223188194ec6ede1e3c",
};

/// KEYS: lock, fence, record of the run, completion, marker. ARGV: as in a finish, but before the request `ask` for the run id or nothing. A finish
/// at a node of a quorum.
pub(super) const CONCLUDE: Script = Script {
    name: "conclude",
    text: finish!(free!(), concat!(in_doubt!(), "if in_doubt() then return told({'abstains'}) end\n")),
    sha1: "95d1ca1af030d960b90a2d15802d7974e449dfe2",
};

mod queue;
pub(super) use queue::{JOIN, LEAVE};
mod revoke;
pub(super) use revoke::REVOKE;

mod records;
pub(super) use records::{MARK, RAISE, READ};
