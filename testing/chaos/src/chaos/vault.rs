//! What the lock protects: three counters in a Redis server that nothing is done to.
//!
//! Every write appends to a list in the same script, so the order of accepted writes is known whoever was killed.

use std::path::PathBuf;

use leasehold_servers::redis::Server;
use leasehold_servers::resp::Reply;

/// Written without any lock: it must lose updates, or this instrument is blind.
pub const BARE: &str = "bare";
/// Written under the lock. A process that is stopped before its write loses an update here.
pub const LOCKED: &str = "locked";
/// Written under the lock, past the guard.
pub const GUARDED: &str = "guarded";

/// KEYS: counter, log. ARGV: value, line.
pub const WRITE: &str = "\
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1";

/// To stand after the check of the guard. KEYS: mark, counter, log. ARGV: token, value, line.
pub const GUARDED_WRITE: &str = "
local passed, reply = leasehold_check(KEYS[1], ARGV[1])
if not passed then return reply end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('RPUSH', KEYS[3], ARGV[3])
return reply";

const READ: &str = "return {redis.call('GET', KEYS[1]) or '0', redis.call('LRANGE', KEYS[2], 0, -1)}";

/// The server.
pub struct Vault(Server);

/// A counter and the writes that it accepted, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// What it holds at the end.
    pub value: u64,
    /// The token of each write; 0 where there is no lock.
    pub tokens: Vec<u64>,
}

impl Ledger {
    /// Writes that nothing is left of.
    pub fn lost(&self) -> i64 {
        self.tokens.len() as i64 - self.value.cast_signed()
    }
}

impl Vault {
    /// Starts it.
    pub fn start() -> Self {
        Self(Server::builder().unix_socket().start())
    }

    /// Reached from every network namespace.
    pub fn socket(&self) -> PathBuf {
        self.0.socket_path()
    }

    /// A counter, with its writes, at one instant.
    ///
    /// # Errors
    /// When what is there was not written by workers.
    pub fn ledger(&self, counter: &str) -> crate::Result<Ledger> {
        let reply = self.0.command(&["EVAL", READ, "2", counter, &log_of(counter)]);
        let Reply::Array(parts) = &reply else { return Err(format!("no ledger: {reply:?}").into()) };
        let [value, log] = &parts[..] else { return Err(format!("no ledger: {reply:?}").into()) };
        let tokens = log.array().iter().map(|line| Ok(line.text().parse()?)).collect::<crate::Result<_>>()?;
        Ok(Ledger { value: value.text().parse()?, tokens })
    }
}

/// Where the writes of a counter are listed.
pub fn log_of(counter: &str) -> String {
    format!("{counter}-log")
}
