//! The process that breaks and revokes the locks of others, and their sessions; and the one that takes the locks of the dead.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{sleep, spawn};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{Error, HolderMatch, LockInfo, ReleaseIfOutcome, RevokeOutcome};
use leasehold_bench::child;
use leasehold_bench::rng::Rng;
use serde_json::{Value, json};

use super::PLACES;
use super::worker::{LOCKS, name_of, say};
use crate::Result;
use crate::chaos::now_ns;
use crate::chaos::worker::{Assignment, end_of, pass};

/// The names of the parts that child processes play.
pub const BREAKER: &str = "breaker";
pub const HEIR: &str = "heir";
/// The words of the one who starts them: `bury LOCK TOKEN`, `rest`, and `halt`.
pub const BURY: &str = "bury";
pub const REST: &str = "rest";
pub const HALT: &str = "halt";
/// The longest pause between two acts, and between seeing a holder and acting on it.
const PAUSE: Duration = Duration::from_millis(150);
const SLIP: Duration = Duration::from_millis(100);
/// The longest pause between two words.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// One act in this many is on a session.
const SESSIONS: u64 = 20;

/// Something that was done to a holder. Times are the machine's monotonic clock in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Act {
    /// Its name, such as `break`.
    pub what: String,
    /// The lock; `None` for a whole session.
    pub lock: Option<usize>,
    /// The session whose locks are meant, of an act on a whole session.
    pub session: Option<String>,
    /// The time just before it.
    pub from: u64,
    /// The time just after the answer.
    pub to: u64,
    /// The token of the holder that it hit; `None` if its answer was lost.
    pub token: Option<u64>,
    /// The token of the holder that was seen before it.
    pub least: u64,
}

impl Act {
    /// Reads a line, if it tells of an act.
    pub fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let number = |name: &str| value[name].as_u64();
        Some(Self {
            what: value["act"].as_str()?.to_owned(),
            lock: number("permit").and_then(|lock| usize::try_from(lock).ok()),
            session: value["session"].as_str().map(str::to_owned),
            from: number("from")?,
            to: number("at")?,
            token: number("token"),
            least: number("least").unwrap_or_default(),
        })
    }

    fn tell(&self) {
        let Self { what, lock, session, from, token, least, .. } = self;
        let line = json!({
            "act": what, "permit": lock, "session": session, "from": from, "at": now_ns(), "token": token, "least": least
        });
        child::say(&line.to_string());
    }

    /// True if it frees the lock for others although its holder may not know yet.
    pub fn is_break(&self) -> bool {
        self.what.starts_with("break") || self.what.starts_with("release")
    }
}

/// Runs the breaker until it gets the word to halt, so that all that it does is written down.
///
/// # Errors
/// For an error that is not temporary.
pub fn work(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let client = assignment.connect(&assignment.builder(), pass)?;
    let words = words();
    let mut rng = Rng::new(std::process::id().into(), now_ns());
    let mut dead = None;
    loop {
        match words.recv_timeout(rng.between(Duration::ZERO, PAUSE)) {
            Ok(word) if word == HALT => return Ok(()),
            Ok(word) => dead = dead_in(&word),
            Err(RecvTimeoutError::Timeout) => {}
            // The process that started it is gone.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if let Some((lock, token)) = dead {
            revoke(&client, lock, token)?;
        }
        if rng.once_in(SESSIONS) {
            revoke_session(&client, &format!("w{}", rng.draw() % PLACES as u64))?;
            continue;
        }
        let lock = (rng.draw() % LOCKS as u64) as usize;
        match client.inspect(name_of(lock)) {
            Ok(Some(LockInfo { token: Some(token), .. })) => {
                sleep(rng.between(Duration::ZERO, SLIP));
                match rng.draw() % 3 {
                    0 => break_lock(&client, lock, token)?,
                    1 => release_if(&client, lock, token)?,
                    _ => revoke(&client, lock, token)?,
                }
            }
            Ok(_) => {}
            Err(error) => pass(error)?,
        }
    }
}

fn words() -> Receiver<String> {
    let (sender, words) = channel();
    spawn(move || while sender.send(child::listen()).is_ok() {});
    words
}

/// The dead holder's lock and token, if there is one from now on.
fn dead_in(word: &str) -> Option<(usize, u64)> {
    let parts: Vec<&str> = word.split(' ').collect();
    let [BURY, lock, token] = parts[..] else { return None };
    Some((lock.parse().ok()?, token.parse().ok()?))
}

/// Waits for the locks of the dead, so that somebody does, until it is killed.
///
/// # Errors
/// For an error that is not temporary.
pub fn inherit(text: &str) -> Result {
    let assignment = Assignment::parse(text)?;
    let ttl = Duration::from_millis(assignment.ttl_ms);
    let client = assignment.connect(&assignment.builder().session(HEIR), pass)?;
    let words = words();
    let mut dead = None;
    loop {
        // Only for a moment while somebody is dead: an attempt may have failed.
        dead = match words.recv_timeout(if dead.is_some() { SLIP } else { PATIENCE }) {
            Ok(word) => dead_in(&word),
            Err(RecvTimeoutError::Timeout) => dead,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let Some((lock, _)) = dead else { continue };
        say(now_ns(), "asked", lock, json!({}));
        match client.lock(name_of(lock)).ttl(ttl).wait(ttl).acquire() {
            Ok(lease) => {
                let (token, until) = (lease.token(), end_of(&lease).1);
                say(now_ns(), "granted", lock, json!({ "token": token, "until": until, "watched": false }));
                say(now_ns(), "releasing", lock, json!({ "token": token }));
                if let Err(error) = lease.release() {
                    pass(error).or_else(|error| if lease.is_lost() { Ok(()) } else { Err(error) })?;
                }
                dead = None;
            }
            Err(error) => pass(error)?,
        }
    }
}

fn break_lock(client: &Client, lock: usize, least: u64) -> Result {
    act("break", lock, least, || Ok(client.break_lock(name_of(lock))?.map(|holder| holder.token)))
}

fn release_if(client: &Client, lock: usize, token: u64) -> Result {
    act("release_if", lock, token, || {
        Ok(match client.release_if(name_of(lock), HolderMatch::from(token))? {
            ReleaseIfOutcome::Released(holder) => Some(holder.token),
            ReleaseIfOutcome::NotMatched(_) | ReleaseIfOutcome::Free | _ => None,
        })
    })
}

fn revoke(client: &Client, lock: usize, token: u64) -> Result {
    act("revoke", lock, token, || {
        Ok(match client.revoke(name_of(lock), token)? {
            RevokeOutcome::Revoked(holder) => Some(holder.token),
            RevokeOutcome::NotMatched(_) | RevokeOutcome::Free | _ => None,
        })
    })
}

/// Does something, and writes down the token of the holder that it hit, or that nobody knows.
fn act(what: &str, lock: usize, least: u64, act: impl FnOnce() -> Result<Option<Option<u64>>, Error>) -> Result {
    let told = Act { what: what.to_owned(), lock: Some(lock), from: now_ns(), least, ..Act::default() };
    match act() {
        Ok(Some(token)) => Act { token, ..told }.tell(),
        Ok(None) => {}
        Err(error) => {
            told.tell();
            pass(error)?;
        }
    }
    Ok(())
}

fn revoke_session(client: &Client, session: &str) -> Result {
    let told =
        Act { what: "revoke_session".to_owned(), session: Some(session.to_owned()), from: now_ns(), ..Act::default() };
    match client.revoke_session(session) {
        Ok(revoked) if revoked.is_empty() => {}
        Ok(_) => told.tell(),
        Err(error) => {
            told.tell();
            pass(error)?;
        }
    }
    Ok(())
}
