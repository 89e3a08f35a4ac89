//! The worker in Rust. Those in Python and JavaScript, in `testing/chaos/workers`, do the same.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold::fence::RedisGuard;
use leasehold::{ClientBuilder, Error, ErrorKind};
use leasehold_bench::chance::Chance;
use leasehold_bench::child;
use redis::Connection;
use serde_json::{Value, json};

use super::now_ns;
use super::vault::{BARE, GUARDED, GUARDED_WRITE, LOCKED, WRITE, log_of};
use crate::Result;

/// Between two looks of the watch, and how late a look is worth a line.
pub const LOOK: Duration = Duration::from_millis(5);
pub const STALL: Duration = Duration::from_millis(10);
/// How long a loss may take to be told before it counts as never told.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between reading and writing without a lock.
const BARE_WORK: Duration = Duration::from_millis(20);
/// Between reading and checking the lease.
const WORK: Duration = Duration::from_millis(3);
/// Between checking the lease and writing, where any time can pass.
const SLIP: Duration = Duration::from_millis(1);
/// One lease in so many is long enough for renewals.
const LONG: u64 = 4;
const MOST_ROUNDS: u64 = 6;
/// One lease in so many is left alone by the watch: a look ends what is over, and so could hide that nothing else does.
const UNWATCHED: u64 = 4;

/// What every worker is told, as JSON in its first argument.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The label that others see.
    pub name: String,
    /// Urls; more than one is a quorum.
    pub stores: Vec<String>,
    /// Of a quorum: the longest ttl.
    pub max_ttl_ms: Option<u64>,
    /// How long a lease lasts.
    pub ttl_ms: u64,
    /// The socket of the vault.
    pub vault: PathBuf,
}

/// Of a quorum, which its nodes know it by: workers reach them at different addresses.
pub const QUORUM: &str = "chaos";
/// What is locked.
pub const LOCK: &str = "counter";

impl Assignment {
    /// For the command line.
    pub fn text(&self) -> String {
        json!({
            "name": self.name,
            "stores": self.stores,
            "max_ttl_ms": self.max_ttl_ms,
            "quorum": QUORUM,
            "lock": LOCK,
            "ttl_ms": self.ttl_ms,
            "vault": self.vault.display().to_string(),
            "write": WRITE,
            "guarded_write": GUARDED_WRITE,
        })
        .to_string()
    }

    /// Back from the command line.
    ///
    /// # Errors
    /// For anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let word = |name: &str| value[name].as_str().map(str::to_owned).ok_or(format!("no {name}"));
        let stores = value["stores"].as_array().ok_or("no stores")?;
        Ok(Self {
            name: word("name")?,
            stores: stores.iter().filter_map(|url| url.as_str().map(str::to_owned)).collect(),
            max_ttl_ms: value["max_ttl_ms"].as_u64(),
            ttl_ms: value["ttl_ms"].as_u64().ok_or("no ttl")?,
            vault: word("vault")?.into(),
        })
    }
}

/// Works until it is killed.
///
/// # Errors
/// Whatever will not pass by itself.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let vault = redis::Client::open(format!("unix://{}", assignment.vault.display()))?.get_connection()?;
    let mut builder = ClientBuilder::default().owner(&assignment.name);
    if let Some(max_ttl) = assignment.max_ttl_ms {
        builder = builder.max_ttl(Duration::from_millis(max_ttl)).quorum_id(QUORUM);
    }
    let client = loop {
        match Client::connect_with(builder.clone(), assignment.stores.as_slice()) {
            Ok(client) => break client,
            Err(error) => pass(error)?,
        }
    };
    say(&json!({ "what": "started" }));
    let held = Arc::new(Mutex::new(None));
    let watched = Arc::clone(&held);
    spawn(move || watch(&watched));
    let chance = Chance::new(std::process::id().into(), now_ns());
    let mut worker = Worker { vault, chance, ttl: Duration::from_millis(assignment.ttl_ms) };
    loop {
        worker.count_without_a_lock()?;
        say(&json!({ "what": "asked" }));
        match client.lock(LOCK).ttl(worker.ttl).wait(worker.ttl * 5).acquire() {
            Ok(lease) => {
                let lease = Arc::new(lease);
                let is_watched = !worker.chance.once_in(UNWATCHED);
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
    vault: Connection,
    chance: Chance,
    ttl: Duration,
}

impl Worker {
    fn hold(&mut self, lease: &Lease) -> Result {
        let token = lease.token();
        let (told, tidings) = channel();
        lease.on_lost(move |_| {
            say(&json!({ "what": "told", "token": token }));
            // Nobody waits for it unless the worker has noticed as well.
            let _ = told.send(());
        });
        if self.use_lease(lease)? {
            say(&json!({ "what": "releasing", "token": token }));
            match lease.release() {
                Ok(()) => say(&json!({ "what": "released", "token": token })),
                Err(error) if error.kind() == ErrorKind::Lost => say(&json!({ "what": "lost", "token": token })),
                Err(error) => pass(error)?,
            }
        }
        if lease.is_lost() && tidings.recv_timeout(PATIENCE).is_err() {
            say(&json!({ "what": "untold", "token": token }));
        }
        Ok(())
    }

    /// Answers whether there is a lease to give back.
    fn use_lease(&mut self, lease: &Lease) -> Result<bool> {
        let token = lease.token();
        let mark = RedisGuard::mark_key(GUARDED)?;
        let claim =
            redis::cmd("EVAL").arg(RedisGuard::claim_script()).arg(1).arg(&mark).arg(token).query(&mut self.vault)?;
        if !accepted(lease, &mark, claim)? {
            return Ok(!lease.is_lost());
        }
        let long = self.chance.once_in(LONG);
        for _ in 0..=self.chance.draw() % MOST_ROUNDS {
            let (locked, guarded): (Option<u64>, Option<u64>) =
                redis::cmd("MGET").arg(LOCKED).arg(GUARDED).query(&mut self.vault)?;
            self.pause(WORK);
            let at = now_ns();
            if lease.check(Duration::ZERO).is_err() {
                say(&json!({ "what": "lost", "token": token }));
                return Ok(false);
            }
            say_at(at, &json!({ "what": "checked", "token": token }));
            self.pause(SLIP);
            self.write(LOCKED, locked.unwrap_or(0) + 1, token)?;
            let script = format!("{}{GUARDED_WRITE}", RedisGuard::CHECK);
            let mut write = redis::cmd("EVAL");
            write.arg(script).arg(3).arg(&mark).arg(GUARDED).arg(log_of(GUARDED));
            let reply = write.arg(token).arg(guarded.unwrap_or(0) + 1).arg(token).query(&mut self.vault)?;
            if !accepted(lease, &mark, reply)? {
                return Ok(!lease.is_lost());
            }
            if long {
                self.pause(self.ttl / 2);
            }
        }
        Ok(true)
    }

    fn count_without_a_lock(&mut self) -> Result {
        let value: Option<u64> = redis::cmd("GET").arg(BARE).query(&mut self.vault)?;
        self.pause(BARE_WORK);
        self.write(BARE, value.unwrap_or(0) + 1, 0)
    }

    fn write(&mut self, counter: &str, value: u64, token: u64) -> Result {
        let mut write = redis::cmd("EVAL");
        write.arg(WRITE).arg(2).arg(counter).arg(log_of(counter)).arg(value).arg(token);
        Ok(write.query(&mut self.vault)?)
    }

    fn pause(&mut self, most: Duration) {
        sleep(self.chance.between(Duration::ZERO, most));
    }
}

fn accepted(lease: &Lease, mark: &str, reply: i64) -> Result<bool> {
    let token = lease.token();
    match RedisGuard::outcome(mark, token, reply) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::StaleToken => {
            let is_valid = lease.check(Duration::ZERO).is_ok();
            say(&json!({ "what": "refused", "token": token, "valid": is_valid }));
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Says what may pass by itself.
fn pass(error: Error) -> Result {
    if !error.kind().is_temporary() {
        return Err(error.into());
    }
    say(&json!({ "what": "failed", "kind": error.kind().name() }));
    Ok(())
}

/// When it was looked at, and the end. The clock is read first: whatever comes between makes the end look earlier, never
/// later.
fn end_of(lease: &Lease) -> (u64, u64) {
    let now = now_ns();
    (now, now + u64::try_from(lease.remaining().as_nanos()).unwrap_or_default())
}

/// Writes down when renewals move the end of the lease, and when this process did not run.
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

fn say(line: &Value) {
    say_at(now_ns(), line);
}

fn say_at(at: u64, line: &Value) {
    let mut line = line.clone();
    line["at"] = at.into();
    child::say(&line.to_string());
}
