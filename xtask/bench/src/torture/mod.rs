//! Torture: processes that increment one number while they are stopped and killed at random.
//!
//! Every increment reads the number, waits a little, and writes it back in a second transaction, which also logs it:
//! what is logged and not in the number was lost.

mod report;
mod worker;

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use report::{Disorder, Report, Tally, json, table};
pub use worker::work;

use crate::chance::Chance;
use crate::child::Child;
use crate::database::now_ns;
use crate::protected::Protected;

/// A process runs this long between two blows.
const CALM: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(700)];
/// One blow in this many kills instead; as many stops end by a kill.
const KILLS: u64 = 6;
/// Blows at random hit the holder of the lock too rarely: this often it is looked for, and struck if there is one.
const AIM: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
const COUNTER: &str = "counter";

/// What goes wrong here, goes wrong for people who look at a terminal.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// How the number is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Bare,
    /// By a lock.
    Locked,
    /// By a lock, and by a guard that compares tokens.
    Guarded,
}

impl Mode {
    /// In the order in which they take turns.
    pub const ALL: [Self; 3] = [Self::Bare, Self::Locked, Self::Guarded];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Bare => "no lock",
            Self::Locked => "lock only",
            Self::Guarded => "lock and guard",
        }
    }

    /// For machines.
    pub fn key(self) -> &'static str {
        match self {
            Self::Bare => "no_lock",
            Self::Locked => "lock_only",
            Self::Guarded => "lock_and_guard",
        }
    }
}

/// The lock that the processes share.
pub struct Lock {
    /// Where it is: more than one url is a quorum.
    pub urls: Vec<String>,
    /// How long a lease lasts.
    pub ttl: Duration,
    /// The longest ttl of a quorum.
    pub max_ttl: Option<Duration>,
}

impl Lock {
    /// A process is stopped for 0.1 to 3 ttl.
    pub fn stops(&self) -> [Duration; 2] {
        [self.ttl / 10, self.ttl * 3]
    }
}

/// One of the processes, and when it is struck next.
struct Victim {
    child: Child,
    number: u64,
    next: Instant,
    stopped: bool,
}

/// Lets `processes` increment for as long as `time`, as `mode` says, and strikes them; `seed` says when and whom.
///
/// # Errors
/// When a process cannot be started, or ends by itself.
pub fn run(mode: Mode, lock: &Lock, processes: usize, time: Duration, seed: u64) -> Result<Report> {
    let dir = tempfile::Builder::new().prefix("leasehold-chaos-").tempdir()?;
    let folder = dir.path().to_str().ok_or("the temporary folder has no readable name")?;
    let counter = Protected::create(&dir.path().join("counter.db"), COUNTER, mode == Mode::Guarded, 0)?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut born = 0_u64;
    let mut start = |calm: Duration| -> Result<Victim> {
        born += 1;
        let (number, heard) = (born, Arc::clone(&tally));
        let (number_text, seed_text) = (number.to_string(), seed.to_string());
        let (ttl, max_ttl) = (in_ms(lock.ttl), lock.max_ttl.map(in_ms).unwrap_or_default());
        let mut part = vec![mode.key(), folder, &number_text, &seed_text, &ttl, &max_ttl];
        part.extend(lock.urls.iter().map(String::as_str));
        let child = Child::start(&part, move |line| {
            if let Some(line) = line {
                locked(&heard).hear(number, line);
            }
        })?;
        Ok(Victim { child, number, next: Instant::now() + calm, stopped: false })
    };

    let mut chance = Chance::new(seed, mode as u64);
    let begin = Instant::now();
    let began_ns = now_ns();
    let mut victims = Vec::new();
    for _ in 0..processes {
        victims.push(start(chance.between(CALM[0], CALM[1]))?);
    }
    let mut aim = begin + chance.between(AIM[0], AIM[1]);
    let (mut stops, mut kills) = (0, 0);
    let [shortest, longest] = lock.stops();
    while begin.elapsed() < time {
        let mut target = None;
        if Instant::now() >= aim {
            aim = Instant::now() + chance.between(AIM[0], AIM[1]);
            target = locked(&tally).holder();
        }
        for victim in &mut victims {
            if let Some(status) = victim.child.ended()? {
                return Err(format!("{}: a process has ended by itself: {status}", mode.title()).into());
            }
            let is_aimed_at = target == Some(victim.number) && !victim.stopped;
            if Instant::now() < victim.next && !is_aimed_at {
                continue;
            }
            let calm = chance.between(CALM[0], CALM[1]);
            if chance.once_in(KILLS) {
                victim.child.kill();
                locked(&tally).is_gone(victim.number);
                *victim = start(calm)?;
                kills += 1;
            } else if victim.stopped {
                victim.child.go_on();
                victim.stopped = false;
                victim.next = Instant::now() + calm;
            } else {
                victim.child.stop();
                victim.stopped = true;
                victim.next = Instant::now() + chance.between(shortest, longest);
                stops += 1;
            }
        }
        sleep(Duration::from_millis(1));
    }
    drop(victims);
    locked(&tally).is_over();
    let end_ns = now_ns();

    let log = counter.log()?;
    let increments = log.len() as u64;
    let marks: Vec<i64> =
        std::iter::once(began_ns).chain(log.iter().map(|entry| entry.at_ns)).chain([end_ns]).collect();
    let longest_gap = marks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let tally = std::mem::take(&mut *locked(&tally));
    let held = tally.held;
    Ok(Report {
        increments,
        lost: increments.cast_signed() - counter.value()?,
        tally,
        stops,
        kills,
        disorder: Disorder::of(&log),
        time: Duration::from_nanos(u64::try_from(end_ns - began_ns)?),
        held,
        longest_gap: Duration::from_nanos(u64::try_from(longest_gap)?),
    })
}

fn locked(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_ms(length: Duration) -> String {
    length.as_millis().to_string()
}
