//! One process: asks for a permit, keeps it for a while, and lets it go, forever.

use std::thread::sleep;
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::Permit;
use leasehold_bench::rng::Rng;
use serde_json::json;

use super::PERMITS;
use crate::Result;
use crate::chaos::now_ns;
use crate::chaos::worker::{Assignment, pass, say_at};

/// The name of the part that a child process plays.
pub const WORKER: &str = "permits";
const SEMAPHORE: &str = "license";
const MOST_ROUNDS: u64 = 6;

/// Runs the worker until it is killed.
///
/// # Errors
/// For an error that is not temporary.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let ttl = Duration::from_millis(assignment.ttl_ms);
    let client = assignment.connect(&assignment.builder(), pass)?;
    let mut rng = Rng::new(std::process::id().into(), now_ns());
    loop {
        match client.semaphore(SEMAPHORE, PERMITS).ttl(ttl).wait(ttl * 5).acquire() {
            Ok(permit) => hold(permit, ttl, &mut rng)?,
            Err(error) => pass(error)?,
        }
        sleep(rng.between(Duration::ZERO, ttl / 10));
    }
}

fn hold(permit: Permit, ttl: Duration, rng: &mut Rng) -> Result {
    let (index, token) = (permit.index(), permit.token());
    let tell = move |at: u64, what: &str, until: u64| {
        say_at(at, &json!({ "what": what, "permit": index, "token": token, "until": until, "watched": true }));
    };
    // The clock is read first: a stop in between makes the end look earlier, never later.
    let end = |at: u64| at + u64::try_from(permit.remaining().as_nanos()).unwrap_or_default();
    let asked = now_ns();
    let until = end(asked);
    tell(now_ns(), "granted", until);
    permit.on_lost(move |_| tell(now_ns(), "notified", 0));
    for _ in 0..=rng.draw() % MOST_ROUNDS {
        sleep(rng.between(Duration::ZERO, ttl / 2));
        let at = now_ns();
        let until = end(at);
        if permit.check(Duration::ZERO).is_err() {
            tell(now_ns(), "lost", 0);
            return Ok(());
        }
        tell(at, "valid", until);
    }
    tell(now_ns(), "releasing", 0);
    match permit.release() {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Lost => tell(now_ns(), "lost", 0),
        Err(error) => pass(error)?,
    }
    Ok(())
}
