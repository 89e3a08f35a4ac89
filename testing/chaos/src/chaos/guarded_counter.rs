//! The protected resource: three counters in a Redis server that no fault affects.
//!
//! Every write appends to a list in the same script, so the order of accepted writes is known even if the writer is
//! killed.

use std::path::{Path, PathBuf};

use leasehold::ErrorKind;
use leasehold::fence::RedisGuard;
use leasehold_servers::redis::Server;
use leasehold_servers::resp::Reply;
use redis::Connection;

/// The control, written without any lock. It must lose updates, or the run would not have noticed lost updates at all.
pub const BARE: &str = "bare";
/// Written under the lock. A process that is stopped just before its write loses an update here.
pub const LOCKED: &str = "locked";
/// Written under the lock and checked by the guard. It must never lose an update.
pub const GUARDED: &str = "guarded";

/// A script that writes without a guard. KEYS: counter, log. ARGV: value, line.
pub const WRITE: &str = "\
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1";

/// The rest of a script that begins with the guard's check. KEYS: mark, counter, log. ARGV: token, value, line.
pub const GUARDED_WRITE: &str = "
local passed, reply = leasehold_check(KEYS[1], ARGV[1])
if not passed then return reply end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('RPUSH', KEYS[3], ARGV[3])
return reply";

const READ: &str = "return {redis.call('GET', KEYS[1]) or '0', redis.call('LRANGE', KEYS[2], 0, -1)}";

/// The server of the counters.
pub struct CounterServer(Server);

/// A counter's value and the writes that it accepted, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterLog {
    /// The value at the end.
    pub value: u64,
    /// The token of each write; 0 where there is no lock.
    pub tokens: Vec<u64>,
}

impl CounterLog {
    /// The number of lost updates.
    pub fn lost(&self) -> i64 {
        self.tokens.len() as i64 - self.value.cast_signed()
    }
}

impl CounterServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self(Server::builder().unix_socket().start())
    }

    /// Its Unix socket, which every network namespace can reach.
    pub fn socket(&self) -> PathBuf {
        self.0.socket_path()
    }

    /// Reads a counter and its writes at one instant.
    ///
    /// # Errors
    /// When the content was not written by workers.
    pub fn log(&self, counter: &str) -> crate::Result<CounterLog> {
        let reply = self.0.command(&["EVAL", READ, "2", counter, &log_of(counter)]);
        let Reply::Array(parts) = &reply else { return Err(format!("not a counter and its log: {reply:?}").into()) };
        let [value, log] = &parts[..] else { return Err(format!("not a counter and its log: {reply:?}").into()) };
        let tokens = log.array().iter().map(|line| Ok(line.text().parse()?)).collect::<crate::Result<_>>()?;
        Ok(CounterLog { value: value.text().parse()?, tokens })
    }
}

/// A worker's connection to the counters.
pub struct Counters(pub(super) Connection);

impl Counters {
    /// Connects to the server's socket.
    ///
    /// # Errors
    /// Redis's.
    pub fn connect(socket: &Path) -> crate::Result<Self> {
        Ok(Self(redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()?))
    }

    /// The value of a counter.
    ///
    /// # Errors
    /// Redis's.
    pub fn read(&mut self, counter: &str) -> crate::Result<u64> {
        let value: Option<u64> = redis::cmd("GET").arg(counter).query(&mut self.0)?;
        Ok(value.unwrap_or(0))
    }

    /// Claims a counter for this token; false if the guard has seen a later one.
    ///
    /// # Errors
    /// Redis's.
    pub fn claim(&mut self, counter: &str, token: u64) -> crate::Result<bool> {
        let mark = RedisGuard::mark_key(counter)?;
        let mut claim = redis::cmd("EVAL");
        claim.arg(RedisGuard::claim_script()).arg(1).arg(&mark).arg(token);
        passed(&mark, token, claim.query(&mut self.0)?)
    }

    /// Writes a counter past its guard; false if that has seen a later token.
    ///
    /// # Errors
    /// Redis's.
    pub fn write(&mut self, counter: &str, value: u64, token: u64) -> crate::Result<bool> {
        let mark = RedisGuard::mark_key(counter)?;
        let mut write = redis::cmd("EVAL");
        write.arg(format!("{}{GUARDED_WRITE}", RedisGuard::CHECK)).arg(3).arg(&mark).arg(counter).arg(log_of(counter));
        passed(&mark, token, write.arg(token).arg(value).arg(token).query(&mut self.0)?)
    }
}

fn passed(mark: &str, token: u64, reply: i64) -> crate::Result<bool> {
    match RedisGuard::outcome(mark, token, reply) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::StaleToken => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The key of the list with a counter's writes.
pub fn log_of(counter: &str) -> String {
    format!("{counter}-log")
}
