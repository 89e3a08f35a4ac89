//! Items of compare-and-set ([`crate::cas`]) in Redis: a hash with `version`, `value` (Base64) and `writeIds`, under the key
//! `{name}` 0x1F `item of name`, or `name` 0x1F `item` where the name has a hash tag.
//!
//! The value is Base64 because Redis behind HTTP answers in JSON, which has no bytes.

use alloc::string::ToString;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use leasehold_core::Resource;
use leasehold_core::op::{Denial, Outcome};

use super::{Command, Topology, error_outcome, keys};
use crate::cas::{Answer, Ask, Item, corrupt, misfit};
use crate::resp::Value;

/// Reads an item. Its name comes back, so that no other reply is taken for this one.
const READ: &str = r"local item = redis.call('HMGET', KEYS[1], 'version', 'value', 'writeIds')
if not item[1] and redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign', ARGV[1]} end
return {'item', item[1] or '', item[2] or '', item[3] or '', ARGV[1]}";

/// Writes an item if it is as it was seen. A write that is sent again and has come through is answered the same, and is
/// written again, so that a `WAIT` behind it counts the replicas that have it.
const WRITE: &str = r"local seen = redis.call('HMGET', KEYS[1], 'version', 'writeIds')
if not seen[1] and redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign', ARGV[3]} end
local writes = seen[2] or ''
if string.find(writes, ARGV[3], 1, true) then
  redis.call('HSET', KEYS[1], 'writeIds', writes)
  return {'written', ARGV[3]}
end
if (seen[1] or '') ~= ARGV[1] or writes ~= ARGV[2] then return {'raced', ARGV[3]} end
redis.call('HSET', KEYS[1], 'version', ARGV[4], 'value', ARGV[5], 'writeIds', ARGV[6])
return {'written', ARGV[3]}";

/// The key of the item `name`.
pub fn key(name: &Resource) -> Vec<u8> {
    keys::of(name).item().concat()
}

/// The command that asks this of the item `name`.
///
/// # Errors
/// A name that cannot be used on a cluster.
pub fn command(topology: Topology, name: &Resource, ask: Ask<'_>) -> Result<Command, Denial> {
    if topology == Topology::Cluster {
        keys::check_cluster(name)?;
    }
    let key = key(name);
    Ok(match ask {
        Ask::Read => Command::new([&b"EVAL"[..], READ.as_bytes(), b"1", &key, name.as_str().as_bytes()]),
        Ask::Write { seen, new } => {
            let version = seen.map(|seen| seen.version.to_string()).unwrap_or_default();
            let writes = seen.map(Item::writes).unwrap_or_default();
            let (next, value) = (new.version.to_string(), STANDARD.encode(&new.value));
            let arguments = [&version, writes, new.last_write(), &next, &value, new.writes()];
            let words: [&[u8]; 4] = [b"EVAL", WRITE.as_bytes(), b"1", &key];
            Command::new(words.into_iter().chain(arguments.iter().map(|word| word.as_bytes())))
        }
    })
}

/// Tells if a command reads an item, so that its reply may be as long as one.
pub fn is_read(command: &Command) -> bool {
    command.words().nth(1) == Some(READ.as_bytes())
}

/// Reads the reply to [`command`].
pub fn answer(name: &Resource, ask: Ask<'_>, reply: &Value) -> Answer {
    if let Some(error) = reply.as_error() {
        return Answer::Failed(error_outcome(error));
    }
    let Value::Array(parts) = reply else { return Answer::Failed(Outcome::Unknown(misfit())) };
    let Some(words) = parts.iter().map(text).collect::<Option<Vec<&str>>>() else {
        return Answer::Failed(Outcome::Unknown(misfit()));
    };
    match (ask, words.as_slice()) {
        (Ask::Read, ["item", "", "", "", of]) if *of == name.as_str() => Answer::Found(None),
        (Ask::Read, ["item", version, value, writes, of]) if *of == name.as_str() => {
            Answer::of(Item::read(version.parse().ok(), STANDARD.decode(value).ok(), Some(*writes)).map(Some))
        }
        (Ask::Write { new, .. }, ["written", id]) if *id == new.last_write() => Answer::Written,
        (_, ["foreign", _]) => Answer::Failed(Outcome::NotApplied(corrupt("the hash under the item's key is no item"))),
        (Ask::Write { new, .. }, ["raced", id]) if *id == new.last_write() => Answer::Raced,
        _ => Answer::Failed(Outcome::Unknown(misfit())),
    }
}

fn text(part: &Value) -> Option<&str> {
    core::str::from_utf8(part.as_bytes()?).ok()
}
