//! One process: a client with a session, which takes several locks with growing ttls, writes past their guards, and lets go.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Lease};
use leasehold_bench::rng::Rng;
use serde_json::{Value, json};

use crate::Result;
use crate::chaos::guarded_counter::Counters;
use crate::chaos::now_ns;
use crate::chaos::worker::{Assignment, LOOK, end_of, pass, refused, say_at};

/// The name of the part that a child process plays.
pub const WORKER: &str = "sessions";
/// The number of locks.
pub const LOCKS: usize = 6;
/// The ttls of the locks that a client takes one after the other, in ttls of the store: its session's ttl grows while it lives.
const TTLS: [u32; 3] = [1, 2, 5];
/// Of these rounds, after which the client is closed and another one begins a session.
const MOST_ROUNDS: u64 = 6;
const MOST_WRITES: u64 = 12;
/// The longest wait for `on_lost` after a loss.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest ttl of a lease, and so of a session.
pub fn longest(ttl: Duration) -> Duration {
    ttl * TTLS[TTLS.len() - 1]
}

/// The name of a lock.
pub fn name_of(lock: usize) -> String {
    format!("lock-{lock}")
}

/// The counter that a lock protects.
pub fn counter_of(lock: usize) -> String {
    format!("counter-{lock}")
}

/// The name of the session of all clients in one place, of which each is the worker `PLACE-PROCESS`.
pub fn session_of(worker: &str) -> &str {
    worker.split_once('-').map_or(worker, |(place, _)| place)
}

struct Held {
    lock: usize,
    lease: Arc<Lease>,
    /// The value of the counter; `None` after the guard refused the lease.
    value: Option<u64>,
    notified: Receiver<()>,
}

/// The leases that the watch thread follows, with the ends that it has written down.
type Watched = Arc<Mutex<Vec<(usize, Arc<Lease>, u64)>>>;

struct Worker {
    counters: Counters,
    rng: Rng,
    ttl: Duration,
    watched: Watched,
}

/// Runs the worker until it is killed.
///
/// # Errors
/// For an error that is not temporary.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let builder = assignment.builder().session(session_of(&assignment.name));
    let watched = Watched::default();
    let followed = Arc::clone(&watched);
    spawn(move || watch(&followed));
    let mut worker = Worker {
        counters: Counters::connect(&assignment.counters)?,
        rng: Rng::new(std::process::id().into(), now_ns()),
        ttl: Duration::from_millis(assignment.ttl_ms),
        watched,
    };
    loop {
        let client = assignment.connect(&builder, pass)?;
        for _ in 0..=worker.rng.draw() % MOST_ROUNDS {
            worker.round(&client)?;
        }
        if let Err(error) = client.close() {
            pass(error)?;
        }
    }
}

impl Worker {
    fn round(&mut self, client: &Client) -> Result {
        let mut held = Vec::new();
        let mut locks: Vec<usize> = (0..LOCKS).collect();
        for times in TTLS.into_iter().take(1 + (self.rng.draw() % TTLS.len() as u64) as usize) {
            let lock = locks.swap_remove((self.rng.draw() % locks.len() as u64) as usize);
            say(now_ns(), "asked", lock, json!({}));
            match client.lock(name_of(lock)).ttl(self.ttl * times).wait(self.ttl * 2).acquire() {
                Ok(lease) => held.push(self.begin(lock, lease)?),
                Err(error) => pass(error)?,
            }
            self.write_to_all(&mut held)?;
        }
        for _ in 0..self.rng.draw() % MOST_WRITES {
            sleep(self.rng.between(Duration::ZERO, self.ttl / 2));
            self.write_to_all(&mut held)?;
        }
        held.into_iter().try_for_each(|held| self.release(held))
    }

    fn begin(&mut self, lock: usize, lease: Lease) -> Result<Held> {
        let token = lease.token();
        // The clock is read first: a stop in between makes the end look earlier, never later.
        let until = end_of(&lease).1;
        say(now_ns(), "granted", lock, json!({ "token": token, "until": until, "watched": true }));
        let (notify, notified) = channel();
        lease.on_lost(move |error| {
            say(now_ns(), "notified", lock, json!({ "token": token, "why": error.to_string() }));
            // The receiver is gone if the worker has not noticed the loss.
            let _ = notify.send(());
        });
        let lease = Arc::new(lease);
        guard(&self.watched).push((lock, Arc::clone(&lease), until));
        let counter = counter_of(lock);
        let is_first = self.counters.claim(&counter, token)?;
        if !is_first {
            refused(&lease, &json!({ "permit": lock }));
        }
        let value = if is_first { Some(self.counters.read(&counter)?) } else { None };
        Ok(Held { lock, lease, value, notified })
    }

    /// Writes to the counters of all leases that are valid, and drops the others.
    fn write_to_all(&mut self, held: &mut Vec<Held>) -> Result {
        for mut this in std::mem::take(held) {
            let (lock, token) = (this.lock, this.lease.token());
            let at = now_ns();
            if this.lease.check(Duration::ZERO).is_err() {
                self.forget(&this);
                say(now_ns(), "lost", lock, json!({ "token": token }));
                if this.notified.recv_timeout(PATIENCE).is_err() {
                    say(now_ns(), "not_notified", lock, json!({ "token": token }));
                }
                continue;
            }
            say(at, "checked", lock, json!({ "token": token }));
            if let Some(value) = &mut this.value {
                *value += 1;
                if !self.counters.write(&counter_of(lock), *value, token)? {
                    refused(&this.lease, &json!({ "permit": lock }));
                    this.value = None;
                }
            }
            held.push(this);
        }
        Ok(())
    }

    fn release(&self, held: Held) -> Result {
        let (lock, token) = (held.lock, held.lease.token());
        // The watch thread looks no more at what is being released.
        self.forget(&held);
        say(now_ns(), "releasing", lock, json!({ "token": token }));
        match held.lease.release() {
            Ok(()) => say(now_ns(), "released", lock, json!({ "token": token })),
            Err(error) if error.kind() == ErrorKind::Lost => say(now_ns(), "lost", lock, json!({ "token": token })),
            Err(error) => pass(error)?,
        }
        Ok(())
    }

    fn forget(&self, held: &Held) {
        guard(&self.watched).retain(|(_, lease, _)| !Arc::ptr_eq(lease, &held.lease));
    }
}

/// The watch thread: writes down renewals.
fn watch(watched: &Watched) {
    loop {
        sleep(LOOK * 2);
        for (lock, lease, known) in guard(watched).iter_mut() {
            let (at, until) = end_of(lease);
            if until > *known + 1_000_000 && until > at {
                *known = until;
                say(at, "valid", *lock, json!({ "token": lease.token(), "until": until }));
            }
        }
    }
}

pub(super) fn say(at: u64, what: &str, lock: usize, mut line: Value) {
    line["what"] = what.into();
    line["permit"] = lock.into();
    say_at(at, &line);
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
