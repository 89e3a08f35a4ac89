//! The worker in Rust. Those in Python and JavaScript, in `testing/chaos/workers`, and in Go, in `go/interop/chaosworker`, do the
//! same.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold::fence::RedisGuard;
use leasehold::{ClientBuilder, Error, ErrorKind};
use leasehold_bench::child;
use leasehold_bench::rng::Rng;
use leasehold_core::member::QuorumId;
use serde_json::{Value, json};

use super::guarded_counter::{BARE, Counters, GUARDED, GUARDED_WRITE, LOCKED, WRITE, log_of};
use super::now_ns;
use crate::Result;

/// The time between two turns of the watch thread, and the delay from which a late turn is a stall.
pub const LOOK: Duration = Duration::from_millis(5);
pub const STALL: Duration = Duration::from_millis(10);
/// The longest wait for `on_lost` after a loss.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest pause between reading and writing without a lock.
const BARE_WORK: Duration = Duration::from_millis(20);
/// The longest pause between reading and checking the lease.
const WORK: Duration = Duration::from_millis(3);
/// The longest pause between checking the lease and writing. In reality any time can pass here.
const SLIP: Duration = Duration::from_millis(1);
/// One lease in this many is long enough for renewals.
const LONG: u64 = 4;
const MOST_ROUNDS: u64 = 6;
/// One lease in this many is not followed by the watch thread, because reading its end could be what ends it.
const UNWATCHED: u64 = 4;

/// The settings of a worker, passed as JSON in its first argument.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The owner label.
    pub name: String,
    /// The urls of the store; several make a quorum.
    pub stores: Vec<String>,
    /// The `max_ttl` of a quorum.
    pub max_ttl_ms: Option<u64>,
    /// The ttl of leases.
    pub ttl_ms: u64,
    /// The socket of the counter server.
    pub counters: PathBuf,
}

/// The id of the quorum. Workers reach its nodes at different addresses, so it must be given.
pub const QUORUM: &str = "chaos";
/// The name of the lock.
pub const LOCK: &str = "counter";

impl Assignment {
    /// Writes the settings as JSON.
    pub fn text(&self) -> String {
        json!({
            "name": self.name,
            "stores": self.stores,
            "max_ttl_ms": self.max_ttl_ms,
            "quorum": QUORUM,
            "quorum_id": QuorumId::of(&[QUORUM], self.stores.len() / 2 + 1).to_string(),
            "mark": RedisGuard::mark_key(GUARDED).unwrap_or_default(),
            "lock": LOCK,
            "ttl_ms": self.ttl_ms,
            "counters": self.counters.display().to_string(),
            "write": WRITE,
            "guarded_write": GUARDED_WRITE,
        })
        .to_string()
    }

    /// The builder of this worker's clients.
    pub fn builder(&self) -> ClientBuilder {
        let builder = ClientBuilder::default().owner(&self.name);
        match self.max_ttl_ms {
            Some(max_ttl) => builder.max_ttl(Duration::from_millis(max_ttl)).quorum_id(QUORUM),
            None => builder,
        }
    }

    /// Connects, however long that takes. `pass` gets each error.
    ///
    /// # Errors
    /// Those that `pass` returns.
    pub fn connect(&self, builder: &ClientBuilder, pass: impl Fn(Error) -> Result) -> Result<Client> {
        loop {
            match Client::connect_with(builder.clone(), self.stores.as_slice()) {
                Ok(client) => return Ok(client),
                Err(error) => pass(error)?,
            }
            sleep(Duration::from_millis(self.ttl_ms / 10));
        }
    }

    /// Reads the settings from JSON.
    ///
    /// # Errors
    /// For anything that [`Assignment::text`] does not write.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let word = |name: &str| value[name].as_str().map(str::to_owned).ok_or(format!("no {name}"));
        let stores = value["stores"].as_array().ok_or("no stores")?;
        Ok(Self {
            name: word("name")?,
            stores: stores.iter().filter_map(|url| url.as_str().map(str::to_owned)).collect(),
            max_ttl_ms: value["max_ttl_ms"].as_u64(),
            ttl_ms: value["ttl_ms"].as_u64().ok_or("no ttl")?,
            counters: word("counters")?.into(),
        })
    }
}

/// Runs the worker until it is killed.
///
/// # Errors
/// For an error that is not temporary.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let counters = Counters::connect(&assignment.counters)?;
    let client = assignment.connect(&assignment.builder(), pass)?;
    say(&json!({ "what": "started" }));
    let held = Arc::new(Mutex::new(None));
    let watched = Arc::clone(&held);
    spawn(move || watch(&watched));
    let rng = Rng::new(std::process::id().into(), now_ns());
    let mut worker = Worker { counters, rng, ttl: Duration::from_millis(assignment.ttl_ms) };
    loop {
        worker.count_without_a_lock()?;
        say(&json!({ "what": "asked" }));
        match client.lock(LOCK).ttl(worker.ttl).wait(worker.ttl * 5).acquire() {
            Ok(lease) => {
                let lease = Arc::new(lease);
                let is_watched = !worker.rng.once_in(UNWATCHED);
                let (token, until) = (lease.token(), end_of(&lease).1);
                say(&json!({ "what": "granted", "token": token, "until": until, "watched": is_watched }));
                *held.lock().unwrap_or_else(PoisonError::into_inner) = is_watched.then(|| Arc::clone(&lease));
                let done = worker.hold(&lease);
                *held.lock().unwrap_or_else(PoisonError::into_inner) = None;
                done?;
            }
            Err(error) => pass(error)?,
        }
        let rest = worker.ttl / 10;
        worker.pause(rest);
    }
}

struct Worker {
    counters: Counters,
    rng: Rng,
    ttl: Duration,
}

impl Worker {
    fn hold(&mut self, lease: &Lease) -> Result {
        let token = lease.token();
        let (notify, notified) = channel();
        lease.on_lost(move |_| {
            say(&json!({ "what": "notified", "token": token }));
            // The receiver is gone if the worker has not noticed the loss.
            let _ = notify.send(());
        });
        if self.use_lease(lease)? {
            say(&json!({ "what": "releasing", "token": token }));
            match lease.release() {
                Ok(()) => say(&json!({ "what": "released", "token": token })),
                Err(error) if error.kind() == ErrorKind::Lost => say(&json!({ "what": "lost", "token": token })),
                Err(error) => pass(error)?,
            }
        }
        if lease.is_lost() && notified.recv_timeout(PATIENCE).is_err() {
            say(&json!({ "what": "not_notified", "token": token }));
        }
        Ok(())
    }

    /// Returns true if there is a lease to release.
    fn use_lease(&mut self, lease: &Lease) -> Result<bool> {
        let token = lease.token();
        if !self.counters.claim(GUARDED, token)? {
            refused(lease, &json!({}));
            return Ok(!lease.is_lost());
        }
        let long = self.rng.once_in(LONG);
        for _ in 0..=self.rng.draw() % MOST_ROUNDS {
            let (locked, guarded): (Option<u64>, Option<u64>) =
                redis::cmd("MGET").arg(LOCKED).arg(GUARDED).query(&mut self.counters.0)?;
            self.pause(WORK);
            let at = now_ns();
            if lease.check(Duration::ZERO).is_err() {
                say(&json!({ "what": "lost", "token": token }));
                return Ok(false);
            }
            say_at(at, &json!({ "what": "checked", "token": token }));
            self.pause(SLIP);
            self.write(LOCKED, locked.unwrap_or(0) + 1, token)?;
            if !self.counters.write(GUARDED, guarded.unwrap_or(0) + 1, token)? {
                refused(lease, &json!({}));
                return Ok(!lease.is_lost());
            }
            if long {
                self.pause(self.ttl / 2);
            }
        }
        Ok(true)
    }

    fn count_without_a_lock(&mut self) -> Result {
        let value = self.counters.read(BARE)?;
        self.pause(BARE_WORK);
        self.write(BARE, value + 1, 0)
    }

    fn write(&mut self, counter: &str, value: u64, token: u64) -> Result {
        let mut write = redis::cmd("EVAL");
        write.arg(WRITE).arg(2).arg(counter).arg(log_of(counter)).arg(value).arg(token);
        Ok(write.query(&mut self.counters.0)?)
    }

    fn pause(&mut self, most: Duration) {
        sleep(self.rng.between(Duration::ZERO, most));
    }
}

/// Writes down that the guard has refused the token of a lease, in a line with these fields.
pub(crate) fn refused(lease: &Lease, fields: &Value) {
    let mut line = fields.clone();
    line["what"] = "refused".into();
    line["token"] = lease.token().into();
    line["valid"] = lease.check(Duration::ZERO).is_ok().into();
    say(&line);
}

/// Writes down a temporary error.
///
/// # Errors
/// Any other one.
pub fn pass(error: Error) -> Result {
    if !error.kind().is_temporary() {
        return Err(error.into());
    }
    say(&json!({ "what": "failed", "kind": error.kind().name(), "why": error.to_string() }));
    Ok(())
}

/// The present time and the end of a lease. The clock is read first, so a pause in between makes the end look earlier,
/// never later.
pub(crate) fn end_of(lease: &Lease) -> (u64, u64) {
    let now = now_ns();
    (now, now + u64::try_from(lease.remaining().as_nanos()).unwrap_or_default())
}

/// The watch thread: writes down renewals and stalls.
fn watch(held: &Mutex<Option<Arc<Lease>>>) {
    let mut known = (0, 0);
    let mut last = now_ns();
    loop {
        sleep(LOOK);
        let now = now_ns();
        if now - last > (LOOK + STALL).as_nanos() as u64 {
            say(&json!({ "what": "stalled", "from": last }));
        }
        last = now;
        let lease = held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(lease) = lease else { continue };
        let (token, (at, until)) = (lease.token(), end_of(&lease));
        let is_news = token != known.0 || until > known.1 + 1_000_000;
        if is_news && until > at {
            known = (token, until);
            say_at(at, &json!({ "what": "valid", "token": token, "until": until }));
        }
    }
}

pub(crate) fn say(line: &Value) {
    say_at(now_ns(), line);
}

pub(crate) fn say_at(at: u64, line: &Value) {
    let mut line = line.clone();
    line["at"] = at.into();
    child::say(&line.to_string());
}
