//! One of the processes.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold::{ClientBuilder, ErrorKind};

use super::{COUNTER, Mode, Result};
use crate::chance::Chance;
use crate::child;
use crate::protected::{Protected, Write};

/// Between reading and checking the lease.
const WORK: [Duration; 2] = [Duration::ZERO, Duration::from_millis(2)];
/// Between checking the lease and writing, where any time can pass.
const SLIP: [Duration; 2] = [Duration::ZERO, Duration::from_micros(500)];
const INCREMENTS_PER_LEASE: i64 = 5;

/// Plays the part that [`run`](super::run) gives a child, until it is killed.
///
/// # Errors
/// Whatever will not pass by itself.
pub fn work(part: &[String]) -> Result {
    let [mode, folder, name, seed, ttl, max_ttl, urls @ ..] = part else {
        return Err(format!("there is no part {part:?}").into());
    };
    let mode = Mode::ALL.into_iter().find(|known| known.key() == mode).ok_or("there is no such mode")?;
    let folder = Path::new(folder);
    let counter = Protected::open(&folder.join("counter.db"), COUNTER, mode == Mode::Guarded)?;
    let chance = Chance::new(seed.parse()?, name.parse::<u64>()?.wrapping_add(1_000));
    let mut worker = Worker { counter, chance, name: name.clone(), lease: 0 };
    if mode == Mode::Bare {
        loop {
            worker.increment(None)?;
        }
    }
    let ttl = Duration::from_millis(ttl.parse()?);
    let mut builder = ClientBuilder::default().owner(name);
    if !max_ttl.is_empty() {
        builder = builder.max_ttl(Duration::from_millis(max_ttl.parse()?));
    }
    let client = loop {
        match Client::connect_with(builder.clone(), urls) {
            Ok(client) => break client,
            // Whoever is stopped while it writes keeps all others out.
            Err(error) if error.kind().is_temporary() => child::say("error"),
            Err(error) => return Err(error.into()),
        }
    };
    loop {
        match client.lock(COUNTER).ttl(ttl).acquire() {
            Ok(lease) => worker.hold(&lease)?,
            Err(error) if error.kind().is_temporary() => child::say("error"),
            Err(error) => return Err(error.into()),
        }
        // Leaves the lock to others: they poll, and would find it taken again.
        sleep(worker.chance.between(Duration::ZERO, ttl / 10));
    }
}

struct Worker {
    counter: Protected,
    chance: Chance,
    name: String,
    lease: i64,
}

impl Worker {
    fn hold(&mut self, lease: &Lease) -> Result {
        self.lease += 1;
        child::say(&format!("granted {}", lease.token()));
        for _ in 0..INCREMENTS_PER_LEASE {
            if !self.increment(Some(lease))? {
                return Ok(());
            }
        }
        match lease.release() {
            Ok(()) => child::say(&format!("released {}", lease.token())),
            Err(error) if error.kind() == ErrorKind::Lost => child::say("lost"),
            Err(error) if error.kind().is_temporary() => child::say("error"),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Answers whether the lease is still good.
    fn increment(&mut self, lease: Option<&Lease>) -> Result<bool> {
        let token = lease.map(Lease::token);
        let Some(value) = self.counter.read(token)? else {
            refused("claim-refused", lease);
            return Ok(false);
        };
        sleep(self.chance.between(WORK[0], WORK[1]));
        if lease.is_some_and(|lease| lease.check(Duration::ZERO).is_err()) {
            child::say("lost");
            return Ok(false);
        }
        sleep(self.chance.between(SLIP[0], SLIP[1]));
        match self.counter.write(value + 1, token, &self.name, self.lease)? {
            Write::Done => Ok(true),
            Write::Refused => {
                refused("write-refused", lease);
                Ok(false)
            }
        }
    }
}

/// A later holder was there first, so this one's lease must be over.
fn refused(what: &str, lease: Option<&Lease>) {
    child::say(what);
    child::say(if lease.is_some_and(Lease::is_lost) { "lost" } else { "overlap" });
}
