//! Torture: processes that increment one number while they are stopped and killed at random.
//!
//! Three modes take turns: no lock, a lock, a lock with a guard. Every increment reads the number, waits a little, and
//! writes it back in a second transaction, which also logs it: what is logged and not in the number was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold::blocking::{Client, Lease};
use leasehold::{ClientBuilder, ErrorKind};
use leasehold_bench::args::Args;
use leasehold_bench::chance::Chance;
use leasehold_bench::child::{self, Child};
use leasehold_bench::database::now_ns;
use leasehold_bench::figures;
use leasehold_bench::protected::{Logged, Protected, Write};

const TTL: Duration = Duration::from_millis(300);
const PROCESSES: usize = 8;
const SECONDS: u64 = 60;
/// A process runs this long between two blows.
const CALM: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(700)];
/// It is stopped for 0.1 to 3 ttl.
const STOP: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(900)];
/// One blow in this many kills instead; as many stops end by a kill.
const KILLS: u64 = 6;
/// Blows at random hit the holder of the lock too rarely: this often it is looked for, and struck if there is one.
const AIM: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
/// Between reading and checking the lease.
const WORK: [Duration; 2] = [Duration::ZERO, Duration::from_millis(2)];
/// Between checking the lease and writing, where any time can pass.
const SLIP: [Duration; 2] = [Duration::ZERO, Duration::from_micros(500)];
const INCREMENTS_PER_LEASE: i64 = 5;
const COUNTER: &str = "counter";

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bare,
    Locked,
    Guarded,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Bare, Self::Locked, Self::Guarded];

    fn title(self) -> &'static str {
        match self {
            Self::Bare => "no lock",
            Self::Locked => "lock only",
            Self::Guarded => "lock and guard",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Bare => "no_lock",
            Self::Locked => "lock_only",
            Self::Guarded => "lock_and_guard",
        }
    }
}

fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => work(&part),
        None => torture(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

// The supervisor.

fn torture() -> Result {
    let args = Args::parse(std::env::args().skip(1), &["--seconds", "--seed", "--processes"], &["--json"])?;
    let seconds: u64 = args.value("--seconds")?.unwrap_or(SECONDS).max(3);
    let processes: usize = args.value("--processes")?.unwrap_or(PROCESSES).max(2);
    let seed: u64 = match args.value("--seed")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 1_000_000,
    };
    let each = Duration::from_secs(seconds) / 3;
    if !args.has("--json") {
        println!(
            "{processes} processes increment one number in a SQLite file, {:.1} s in each mode; seed {seed}\n\
             Each is stopped (SIGSTOP) for {} to {} ms or killed (SIGKILL), again and again; a lease lasts {} ms.\n",
            each.as_secs_f64(),
            STOP[0].as_millis(),
            STOP[1].as_millis(),
            TTL.as_millis()
        );
    }
    let reports = Mode::ALL.map(|mode| run(mode, processes, each, seed));
    let [bare, locked, guarded] = reports;
    let reports = [(Mode::Bare, bare?), (Mode::Locked, locked?), (Mode::Guarded, guarded?)];
    if args.has("--json") {
        println!("{}", json(seed, processes, each, &reports));
    } else {
        print!("{}", table(&reports));
    }
    verdict(&reports, !args.has("--json"))
}

/// What the processes tell, and what is done to them.
#[derive(Default)]
struct Tally {
    /// The process that was granted the lock last, unless it has told that its lease is over.
    holder: Option<u64>,
    /// By fencing token: whether the lease was released.
    grants: BTreeMap<u64, bool>,
    refused_writes: u64,
    refused_claims: u64,
    leases_lost: u64,
    /// Refused although the lease said that it was good: two holders at once.
    overlaps: u64,
    store_errors: u64,
}

impl Tally {
    fn hear(&mut self, who: u64, line: &str) {
        let (what, token) = line.split_once(' ').unwrap_or((line, ""));
        if what == "granted" {
            self.holder = Some(who);
        } else if self.holder == Some(who) {
            self.holder = None;
        }
        match (what, token.parse()) {
            ("granted", Ok(token)) => drop(self.grants.insert(token, false)),
            ("released", Ok(token)) => drop(self.grants.insert(token, true)),
            ("write-refused", _) => self.refused_writes += 1,
            ("claim-refused", _) => self.refused_claims += 1,
            ("lost", _) => self.leases_lost += 1,
            ("overlap", _) => self.overlaps += 1,
            _ => self.store_errors += 1,
        }
    }

    /// Grants that followed a lease which was not released.
    fn takeovers(&self) -> u64 {
        let abandoned = self.grants.values().filter(|released| !**released).count() as u64;
        let last_is_open = self.grants.last_key_value().is_some_and(|(_, released)| !released);
        abandoned - u64::from(last_is_open)
    }
}

/// What a mode came to.
#[derive(Default)]
struct Report {
    increments: u64,
    lost: i64,
    tally: Tally,
    stops: u64,
    kills: u64,
    disorder: Disorder,
    longest_gap: Duration,
}

/// One of the processes, and when it is struck next.
struct Victim {
    child: Child,
    number: u64,
    next: Instant,
    stopped: bool,
}

fn run(mode: Mode, processes: usize, each: Duration, seed: u64) -> Result<Report> {
    let dir = tempfile::Builder::new().prefix("leasehold-chaos-").tempdir()?;
    let folder = dir.path().to_str().ok_or("the temporary folder has no readable name")?;
    let counter = Protected::create(&dir.path().join("counter.db"), COUNTER, mode == Mode::Guarded, 0)?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut born = 0_u64;
    let mut start = |calm: Duration| -> Result<Victim> {
        born += 1;
        let (number, heard) = (born, Arc::clone(&tally));
        let part = [mode.key(), folder, &number.to_string(), &seed.to_string()];
        let child = Child::start(&part, move |line| {
            if let Some(line) = line {
                lock(&heard).hear(number, line);
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
    while begin.elapsed() < each {
        let mut target = None;
        if Instant::now() >= aim {
            aim = Instant::now() + chance.between(AIM[0], AIM[1]);
            target = lock(&tally).holder;
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
                *victim = start(calm)?;
                kills += 1;
            } else if victim.stopped {
                victim.child.go_on();
                victim.stopped = false;
                victim.next = Instant::now() + calm;
            } else {
                victim.child.stop();
                victim.stopped = true;
                victim.next = Instant::now() + chance.between(STOP[0], STOP[1]);
                stops += 1;
            }
        }
        sleep(Duration::from_millis(1));
    }
    drop(victims);
    let end_ns = now_ns();

    let log = counter.log()?;
    let increments = log.len() as u64;
    let marks: Vec<i64> =
        std::iter::once(began_ns).chain(log.iter().map(|entry| entry.at_ns)).chain([end_ns]).collect();
    let longest_gap = marks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let tally = std::mem::take(&mut *lock(&tally));
    Ok(Report {
        increments,
        lost: increments.cast_signed() - counter.value()?,
        tally,
        stops,
        kills,
        disorder: Disorder::of(&log),
        longest_gap: Duration::from_nanos(u64::try_from(longest_gap)?),
    })
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What fencing tokens of accepted writes must never do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Disorder {
    /// Writes with a lower token than the one before.
    falling: u64,
    /// Tokens that served two leases.
    twice: u64,
}

impl Disorder {
    fn of(log: &[Logged]) -> Self {
        let falling = log.windows(2).filter(|pair| pair[1].token < pair[0].token).count() as u64;
        let mut leases: BTreeMap<u64, BTreeSet<(&str, i64)>> = BTreeMap::new();
        for entry in log {
            if let Some(token) = entry.token {
                leases.entry(token).or_default().insert((&entry.writer, entry.lease));
            }
        }
        Self { falling, twice: leases.values().filter(|leases| leases.len() > 1).count() as u64 }
    }
}

/// A measure: its name for people, its name for machines, and whether it needs a lock to make sense.
type Measure = (&'static str, &'static str, bool, fn(&Report) -> i64);

const MEASURES: [Measure; 14] = [
    ("increments", "increments", false, |report| report.increments.cast_signed()),
    ("lost updates", "lost_updates", false, |report| report.lost),
    ("writes refused by the guard", "writes_refused", true, |report| report.tally.refused_writes.cast_signed()),
    ("claims refused by the guard", "claims_refused", true, |report| report.tally.refused_claims.cast_signed()),
    ("accepted writes with a falling token", "falling_tokens", true, |report| report.disorder.falling.cast_signed()),
    ("tokens given out twice", "duplicate_tokens", true, |report| report.disorder.twice.cast_signed()),
    ("leases", "leases", true, |report| report.tally.grants.len() as i64),
    ("leases lost", "leases_lost", true, |report| report.tally.leases_lost.cast_signed()),
    ("leases good beside a later one", "overlaps", true, |report| report.tally.overlaps.cast_signed()),
    ("takeovers", "takeovers", true, |report| report.tally.takeovers().cast_signed()),
    ("errors of the lock store", "store_errors", true, |report| report.tally.store_errors.cast_signed()),
    ("stops", "stops", false, |report| report.stops.cast_signed()),
    ("kills", "kills", false, |report| report.kills.cast_signed()),
    ("longest gap between increments, ms", "longest_gap_ms", false, |report| report.longest_gap.as_millis() as i64),
];

fn table(reports: &[(Mode, Report)]) -> String {
    let heads = reports.iter().map(|(mode, _)| mode.title().to_owned());
    let mut rows = vec![std::iter::once(String::new()).chain(heads).collect()];
    for (name, _, of_locks, measure) in MEASURES {
        let cells = reports.iter().map(|(mode, report)| match mode {
            Mode::Bare if of_locks => "-".to_owned(),
            Mode::Bare | Mode::Locked | Mode::Guarded => measure(report).to_string(),
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    figures::table(&rows)
}

fn json(seed: u64, processes: usize, each: Duration, reports: &[(Mode, Report)]) -> String {
    let modes: Vec<String> = reports
        .iter()
        .map(|(mode, report)| {
            let figures: Vec<String> =
                MEASURES.iter().map(|(_, key, _, measure)| format!("\"{key}\":{}", measure(report))).collect();
            format!("\"{}\":{{{}}}", mode.key(), figures.join(","))
        })
        .collect();
    format!(
        "{{\"seed\":{seed},\"processes\":{processes},\"seconds_per_mode\":{},\"ttl_ms\":{},{}}}",
        each.as_secs_f64(),
        TTL.as_millis(),
        modes.join(",")
    )
}

/// # Errors
/// When the guard did not keep its promise, or had no chance to.
fn verdict(reports: &[(Mode, Report)], aloud: bool) -> Result {
    let mut broken = Vec::new();
    let mut notes = Vec::new();
    for (mode, report) in reports {
        let Disorder { falling, twice } = report.disorder;
        match mode {
            Mode::Bare if report.lost == 0 => notes.push("Without a lock nothing was lost: try again for longer."),
            Mode::Locked if report.lost == 0 => {
                notes.push("With the lock alone nothing was lost this time; it can happen, and the guard is why not.");
            }
            Mode::Guarded if report.increments == 0 => broken.push("nothing was written".to_owned()),
            Mode::Guarded => {
                if report.lost != 0 {
                    broken.push(format!("{} updates are lost", report.lost));
                }
                if report.tally.overlaps != 0 {
                    broken.push(format!("{} times a lease was good while a later one was out", report.tally.overlaps));
                }
                if falling + twice != 0 {
                    broken.push(format!("{falling} tokens fell, {twice} were given out twice"));
                }
            }
            Mode::Bare | Mode::Locked => {}
        }
    }
    if aloud && !notes.is_empty() {
        println!("\n{}", notes.join("\n"));
    }
    if !broken.is_empty() {
        return Err(format!("with lock and guard {}", broken.join(", and ")).into());
    }
    if aloud {
        println!("\nWith lock and guard nothing was lost.");
    }
    Ok(())
}

// The workers.

fn work(part: &[String]) -> Result {
    let [mode, folder, name, seed] = part else { return Err(format!("there is no part {part:?}").into()) };
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
    let store = format!("sqlite:{}", folder.join("locks.db").display());
    let builder = ClientBuilder::default().owner(name);
    let client = loop {
        match Client::connect_with(builder.clone(), &store) {
            Ok(client) => break client,
            // Whoever is stopped while it writes keeps all others out.
            Err(error) if error.kind().is_temporary() => child::say("error"),
            Err(error) => return Err(error.into()),
        }
    };
    loop {
        match client.lock(COUNTER).ttl(TTL).acquire() {
            Ok(lease) => worker.hold(&lease)?,
            Err(error) if error.kind().is_temporary() => child::say("error"),
            Err(error) => return Err(error.into()),
        }
        // Leaves the lock to others: they poll, and would find it taken again.
        sleep(worker.chance.between(Duration::ZERO, TTL / 10));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn write(token: u64, writer: &str, lease: i64) -> Logged {
        Logged { token: Some(token), writer: writer.to_owned(), lease, at_ns: 0 }
    }

    #[test]
    fn tokens_that_fall_or_serve_twice_are_found() {
        let good = [write(1, "a", 1), write(1, "a", 1), write(2, "b", 1), write(3, "a", 2)];
        assert_eq!(Disorder::of(&good), Disorder::default());
        let bad = [write(1, "a", 1), write(2, "b", 1), write(1, "a", 1), write(2, "a", 2)];
        assert_eq!(Disorder::of(&bad), Disorder { falling: 1, twice: 1 });
    }

    #[test]
    fn the_guard_must_have_had_work_and_have_done_it() {
        let with = |change: fn(&mut Report)| {
            let mut guarded = Report { increments: 10, ..Report::default() };
            change(&mut guarded);
            verdict(&[(Mode::Bare, Report::default()), (Mode::Guarded, guarded)], false)
        };
        assert!(with(|_| {}).is_ok(), "losses without a lock are wanted, but not required");
        assert!(with(|guarded| guarded.increments = 0).is_err());
        assert!(with(|guarded| guarded.lost = 1).is_err());
        assert!(with(|guarded| guarded.disorder.falling = 1).is_err());
        assert!(with(|guarded| guarded.disorder.twice = 1).is_err());
        assert!(with(|guarded| guarded.tally.overlaps = 1).is_err());
    }

    #[test]
    fn a_takeover_follows_a_lease_that_was_not_released() {
        let mut tally = Tally::default();
        for line in ["granted 5", "released 5", "granted 7", "granted 9", "released 9", "granted 11"] {
            tally.hear(1, line);
        }
        assert_eq!(tally.takeovers(), 1, "7 was taken over by 9, and nobody has followed 11");
    }
}
