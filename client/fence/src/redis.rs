//! Guards for data in Redis.

use leasehold_core::fence::Rejected;
use leasehold_wire::fence::redis as scripts;

use crate::marks::{number, verdict};
use crate::{Error, ErrorKind};

/// Keeps the mark of a key in Redis beside the key, and compares in the script that writes.
///
/// Run the scripts with the client library that you have: `EVAL`, or `EVALSHA` with a way back to `EVAL`. They are
/// constant texts for Redis 5 and newer, and everything that varies goes through KEYS and ARGV. Each answers one
/// integer, which [`RedisGuard::outcome`] explains.
///
/// | script | KEYS | ARGV |
/// |---|---|---|
/// | [`claim_script`](Self::claim_script) | mark | token |
/// | [`check_script`](Self::check_script) | mark | token |
/// | [`check_and_set_script`](Self::check_and_set_script) | mark, key | token, value |
/// | your own, after [`CHECK`](Self::CHECK) | mark, keys | token, values |
///
/// Redis cannot take back what a script has done, and a transaction (`MULTI`) goes on after a failed check. So the check
/// and the write it guards have to be in **one script**, the check first.
///
/// ```
/// use leasehold_fence::RedisGuard;
///
/// # fn main() -> Result<(), leasehold_fence::Error> {
/// # let token: u64 = 34; // lease.token()
/// # let eval = |script: &str, keys: &[&str], args: &[&str]| 34; // redis::Script::new(script).key(..).arg(..).invoke()
/// let mark = RedisGuard::mark_key("invoice:42")?;
///
/// let reply = eval(RedisGuard::claim_script(), &[&mark], &[&token.to_string()]); // before the first read
/// RedisGuard::outcome(&mark, token, reply)?;
///
/// let script = RedisGuard::check_and_set_script(); // with every write
/// let reply = eval(script, &[&mark, "invoice:42"], &[&token.to_string(), "110"]);
/// RedisGuard::outcome(&mark, token, reply)?;
///
/// // Any other write is a script of your own.
/// let delete = format!(
///     "{}
///      local passed, reply = leasehold_check(KEYS[1], ARGV[1])
///      if not passed then return reply end
///      redis.call('DEL', KEYS[2])
///      return reply",
///     RedisGuard::CHECK
/// );
/// # let _ = delete;
/// # Ok(())
/// # }
/// ```
///
/// # What Redis can forget
/// A mark has no expiry and has to outlive its key, so the server's eviction policy has to be `noeviction` or one of
/// `volatile-*`; `allkeys-*` would evict marks. An item without its mark counts as never claimed: writes are refused,
/// but the next claim passes, even a stale one. A failover or a restart that loses the last writes takes marks back
/// together with the data: then a stale holder can write until the next claim. Claim again after a failover, or keep
/// what must not be lost elsewhere.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RedisGuard;

impl RedisGuard {
    /// The check as a Lua function, to put in front of a script of your own.
    ///
    /// `local passed, reply = leasehold_check(mark_key, token)` raises the mark to the token and answers `true` and the
    /// token, or writes nothing and answers `false` and what the script has to return at once. A script that was let
    /// through returns `reply` too, alone or as the first of several values, for [`RedisGuard::outcome`].
    pub const CHECK: &str = scripts::FUNCTION;

    /// Makes the token the only one that is accepted from now on, apart from higher ones. Run it with each new lease,
    /// **before** reading the key.
    pub const fn claim_script() -> &'static str {
        scripts::CLAIM
    }

    /// The script that checks if a write with the token would be let through now. Use it to give up early. It protects
    /// nothing: only the check in the script of the write does.
    pub const fn check_script() -> &'static str {
        scripts::CHECK
    }

    /// Checks, and sets the key to the value if that went well. As with plain `SET`, the key loses its expiry.
    pub const fn check_and_set_script() -> &'static str {
        scripts::CHECK_AND_SET
    }

    /// The key of the mark that guards `key`, in the same hash slot, so that one script may use both on a Cluster.
    ///
    /// Several keys that one lock protects share the mark of one of them; on a Cluster they share its hash tag. Any
    /// other name serves as well, if it is in the slot of the data and everybody uses the same.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an empty key, and for one with a `}` and without a hash tag: no name of a second key is
    /// sure to be in its slot.
    pub fn mark_key(key: &str) -> Result<String, Error> {
        if has_hash_tag(key) {
            return Ok(format!("{key}\u{1f}mark"));
        }
        if key.is_empty() || key.contains('}') {
            let message = "a key that is empty, or has `}` but no hash tag (text between `{` and the next `}`), shares \
                           its slot with no other key: choose another name";
            return Err(Error::config(message).on(key));
        }
        // Not the same ending: the keys `a` and `{a}` must not share a mark.
        Ok(format!("{{{key}}}\u{1f}mark of key"))
    }

    /// Judges the answer of a script. `item` names the resource in the error.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the item; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1, for an item that was never claimed, and for a first argument
    /// that was no token. [`ErrorKind::StoreRefused`] for a mark that is no token, and for an answer of another script.
    /// In all cases the script has written nothing.
    pub fn outcome(item: &str, token: u64, reply: i64) -> Result<(), Error> {
        number(token)
            .and_then(|token| match reply {
                scripts::UNCLAIMED => Err(Rejected::Unclaimed.into()),
                scripts::NO_MARK => Err(Error::new(
                    ErrorKind::StoreRefused,
                    "the mark is not a token: its key holds something else; let only the guard write it",
                )),
                scripts::NO_TOKEN => Err(Error::config(
                    "the first argument of the script was not a fencing token: pass it in decimal digits",
                )),
                mark => verdict(token, mark),
            })
            .map_err(|error| error.on(item))
    }
}

/// As Redis Cluster reads it: the first `{`, and the first `}` after it with something between.
fn has_hash_tag(key: &str) -> bool {
    key.split_once('{').and_then(|(_, rest)| rest.find('}')).is_some_and(|length| length > 0)
}
