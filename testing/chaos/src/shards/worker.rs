//! One process: works on its share, and leaves and joins as it is told.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{Error, ErrorKind, Shard, Shards};
use leasehold_bench::child;
use serde_json::{Value, json};

use super::SHARDS;
use crate::Result;
use crate::chaos::now_ns;
use crate::chaos::worker::Assignment;

/// The name of the part that a child process plays.
pub const WORKER: &str = "shards";
/// The words of the one who starts it.
pub const LEAVE: &str = "leave";
pub const JOIN: &str = "join";
const NAME: &str = "mail";

/// The tokens of the shards on which this process works. Its lock also keeps the lines of the journal in order.
type Working = Arc<Mutex<BTreeSet<u64>>>;

/// The time between two looks at the other members.
pub fn look_every(ttl: Duration) -> Duration {
    ttl / 2
}

/// The shards that a process holds and the members that it sees, if the line says that.
pub fn seen(line: &str) -> Option<(usize, usize)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value[name].as_u64().and_then(|number| usize::try_from(number).ok());
    Some((number("held")?, number("members")?))
}

/// Runs the worker until it is killed.
///
/// # Errors
/// For an error that is not temporary.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let ttl = Duration::from_millis(assignment.ttl_ms);
    let words = words();
    let client = assignment.connect(&assignment.builder(), pass)?;
    let working = Working::default();
    loop {
        let shards = join(&client, ttl, &working)?;
        while !is_told(&words, ttl / 10, LEAVE) {
            watch(&shards, &working)?;
        }
        shards.stop().map_err(|error| error.to_string())?;
        say(0, 0);
        while !is_told(&words, ttl, JOIN) {}
    }
}

fn words() -> Receiver<String> {
    let (sender, words) = channel();
    thread::spawn(move || while sender.send(child::listen()).is_ok() {});
    words
}

fn is_told(words: &Receiver<String>, most: Duration, word: &str) -> bool {
    match words.recv_timeout(most) {
        Ok(told) => told == word,
        Err(RecvTimeoutError::Timeout) => false,
        // The process that started it is gone.
        Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
    }
}

fn join(client: &Client, ttl: Duration, working: &Working) -> Result<Shards> {
    let (begun, ended) = (Arc::clone(working), Arc::clone(working));
    let request = client.shards(NAME).count(SHARDS).ttl(ttl).look_every(look_every(ttl));
    let shards = request
        .on_gain(move |shard| {
            let mut working = lock(&begun);
            // The clock is read first: a stop in between makes the end look earlier, never later.
            let until = end(now_ns(), shard);
            tell(now_ns(), "granted", shard, until);
            working.insert(shard.token());
        })
        .on_loss(move |shard, loss| {
            let mut working = lock(&ended);
            working.remove(&shard.token());
            tell(now_ns(), if loss.is_some() { "lost" } else { "releasing" }, shard, 0);
        })
        .start()?;
    Ok(shards)
}

/// Writes down the ends of all leases, and the share.
fn watch(shards: &Shards, working: &Working) -> Result {
    if let Some(error) = shards.last_error() {
        pass(error)?;
    }
    let held = shards.held();
    for shard in &held {
        let working = lock(working);
        let at = now_ns();
        let until = end(at, shard);
        if working.contains(&shard.token()) && shard.check(Duration::ZERO).is_ok() {
            tell(at, "valid", shard, until);
        }
    }
    say(held.len(), shards.members());
    Ok(())
}

fn end(at: u64, shard: &Shard) -> u64 {
    at + u64::try_from(shard.remaining().as_nanos()).unwrap_or_default()
}

fn tell(at: u64, what: &str, shard: &Shard, until: u64) {
    let (index, token) = (shard.index(), shard.token());
    child::say(
        &json!({ "at": at, "what": what, "permit": index, "token": token, "until": until, "watched": true })
            .to_string(),
    );
}

/// Writes down an error of a store with faults.
fn pass(error: Error) -> Result {
    if matches!(error.kind(), ErrorKind::Config | ErrorKind::Internal) {
        return Err(error.into());
    }
    child::say(&json!({ "at": now_ns(), "what": "failed", "kind": error.kind().name() }).to_string());
    Ok(())
}

fn say(held: usize, members: usize) {
    child::say(&json!({ "held": held, "members": members }).to_string());
}

fn lock(working: &Mutex<BTreeSet<u64>>) -> MutexGuard<'_, BTreeSet<u64>> {
    working.lock().unwrap_or_else(PoisonError::into_inner)
}
