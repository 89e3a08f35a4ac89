//! One arena for some time: workers at work, and a villain.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, sleep, spawn};
use std::time::{Duration, Instant};

use leasehold_bench::chance::Chance;
use leasehold_bench::child::Child;

use super::arena::{Arena, GROUPS, Place};
use super::blows::{Blow, Kind, Target};
use super::cast::{Ears, Language, Role, heard};
use super::check::{Evidence, margin};
use super::now_ns;
use super::pauses::Span;
use super::vault::{BARE, GUARDED, LOCKED, Vault};
use super::worker::{Assignment, LOOK, STALL};
use crate::Result;

/// A worker runs this long between two blows at random, in tenths of a ttl.
const CALM: [u32; 2] = [5, 50];
/// One blow in this many kills; the others stop.
const KILLS: u64 = 6;
/// Blows at random hit the holder too rarely: this often it is looked for, and struck if there is one.
const AIM: [u32; 2] = [2, 25];
/// Between two looks at everything.
const TICK: Duration = Duration::from_millis(2);
/// Before the first blow at a process.
const BIRTH: Duration = Duration::from_secs(1);

/// What a run leaves behind.
pub struct Outcome {
    /// Where.
    pub arena: Arena,
    /// For the checker.
    pub evidence: Evidence,
    /// When it began and ended, in nanoseconds.
    pub span: (u64, u64),
    /// The names of the workers.
    pub workers: Vec<String>,
    /// Why no network could be cut.
    pub no_network: Option<String>,
}

/// One of the workers.
struct Actor {
    role: Role,
    child: Child,
    book: usize,
    next: Instant,
    /// The blow that it stands still under.
    stopped: Option<Blow>,
}

/// Lets the workers work in an arena for as long as `time`, and strikes as `seed` says. Books are left in `books`.
///
/// # Errors
/// When something cannot be started, or a worker ends by itself.
pub fn run(arena: Arena, time: Duration, seed: u64, folder: &Path, books: &Path) -> Result<Outcome> {
    fs::create_dir_all(folder)?;
    fs::create_dir_all(books)?;
    let vault = Vault::start();
    let mut place = Place::open(arena, folder)?;
    let ears = Ears::default();
    let mut chance = Chance::new(seed, arena as u64);
    let mut blows_of_place = Chance::new(seed, 100 + arena as u64);
    let mut actors = Vec::new();
    let begin = now_ns();
    for group in 0..GROUPS {
        for language in Language::ALL {
            let assignment = Assignment {
                name: format!("{}-{}", language.name(), group + 1),
                stores: place.urls(group),
                max_ttl_ms: arena.max_ttl().map(in_ms),
                ttl_ms: in_ms(arena.ttl()),
                vault: vault.socket(),
            };
            let role = Role { language, group, assignment, inside: place.inside(group) };
            let (child, book) = role.start(&ears, books)?;
            let next = Instant::now() + BIRTH + between(&mut chance, arena.ttl(), CALM);
            actors.push(Actor { role, child, book, next, stopped: None });
        }
    }
    let mut blows = Vec::new();
    let mut pressure = Vec::new();
    let machine = Machine::watch();
    let start = Instant::now();
    let mut aim = start + between(&mut chance, arena.ttl(), AIM);
    while start.elapsed() < time {
        let mut target = None;
        if Instant::now() >= aim {
            aim = Instant::now() + between(&mut chance, arena.ttl(), AIM);
            target = heard(&ears).holder();
        }
        for actor in &mut actors {
            if let Some(status) = actor.child.ended()? {
                return Err(format!("{} has ended by itself: {status}", actor.role.name()).into());
            }
            let is_aimed_at = target == Some(actor.book) && actor.stopped.is_none();
            if Instant::now() >= actor.next || is_aimed_at {
                actor.strike(arena.ttl(), &mut chance, &ears, books, &mut blows)?;
            }
        }
        complain(&ears)?;
        blows.extend(place.go_on(&mut blows_of_place)?);
        pressure.extend(waited().map(|waited| (now_ns(), waited)));
        sleep(TICK);
    }
    blows.extend(place.calm_down()?);
    let mut workers = Vec::new();
    for mut actor in actors {
        if let Some(status) = actor.child.ended()? {
            return Err(format!("{} has ended by itself: {status}", actor.role.name()).into());
        }
        heard(&ears).end(actor.book, now_ns());
        if let Some(mut blow) = actor.stopped.take() {
            blow.to = now_ns();
            blows.push(blow);
        }
        // Waits until its last line was heard.
        actor.child.kill();
        workers.push(actor.role.name().to_owned());
    }
    complain(&ears)?;
    pressure.extend(waited().map(|waited| (now_ns(), waited)));
    let stalls = machine.stalls();
    let end = now_ns();
    blows.sort_by_key(|blow| blow.from);
    fs::write(books.join("blows.jsonl"), blows.iter().map(Blow::line).collect::<String>())?;
    let books = heard(&ears).take();
    let evidence = Evidence {
        ttl: u64::try_from(arena.ttl().as_nanos())?,
        margin: margin(arena.ttl()),
        is_file: arena == Arena::Sqlite,
        stalls,
        pressure,
        books,
        blows,
        bare: vault.ledger(BARE)?,
        locked: vault.ledger(LOCKED)?,
        guarded: vault.ledger(GUARDED)?,
    };
    Ok(Outcome { arena, evidence, span: (begin, end), workers, no_network: place.no_network.take() })
}

impl Actor {
    fn strike(
        &mut self,
        ttl: Duration,
        chance: &mut Chance,
        ears: &Ears,
        books: &Path,
        blows: &mut Vec<Blow>,
    ) -> Result {
        let calm = between(chance, ttl, CALM);
        let from = now_ns();
        let target = || Target::Worker(self.role.name().to_owned());
        let blow = |kind, to| Blow { kind, target: target(), from, to, has_hit: true };
        if let Some(stop) = &mut self.stopped
            && !chance.once_in(KILLS)
        {
            self.child.go_on();
            stop.to = now_ns();
            blows.extend(self.stopped.take());
            self.next = Instant::now() + calm;
        } else if self.stopped.is_some() || chance.once_in(KILLS) {
            heard(ears).end(self.book, from);
            self.child.kill();
            blows.push(blow(Kind::Kill, now_ns()));
            blows.extend(self.stopped.take().map(|stop| Blow { to: now_ns(), ..stop }));
            (self.child, self.book) = self.role.start(ears, books)?;
            self.next = Instant::now() + BIRTH + calm;
        } else {
            self.child.stop();
            self.stopped = Some(blow(Kind::Stop, u64::MAX));
            self.next = Instant::now() + chance.between(ttl / 10, ttl * 3);
        }
        Ok(())
    }
}

fn complain(ears: &Ears) -> Result {
    heard(ears).complaint.take().map_or(Ok(()), |complaint| Err(complaint.into()))
}

/// Somebody who asks to be woken again and again, and writes down when that came late.
struct Machine {
    is_over: Arc<AtomicBool>,
    witness: JoinHandle<Vec<Span>>,
}

impl Machine {
    fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let witness = spawn(move || {
            let mut stalls = Vec::new();
            let mut last = now_ns();
            while !until.load(Ordering::Relaxed) {
                sleep(LOOK);
                let now = now_ns();
                if now - last > (LOOK + STALL).as_nanos() as u64 {
                    stalls.push((last, now));
                }
                last = now;
            }
            stalls
        });
        Self { is_over, witness }
    }

    fn stalls(self) -> Vec<Span> {
        self.is_over.store(true, Ordering::Relaxed);
        self.witness.join().unwrap_or_default()
    }
}

/// For how long in all somebody may have waited for a processor, in nanoseconds, where the kernel says.
fn waited() -> Option<u64> {
    let pressure = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total: u64 = pressure.lines().next()?.split_once("total=")?.1.trim().parse().ok()?;
    // It counts the mean of all processors, and whoever waits may wait for a single one.
    let processors = available_parallelism().map_or(1, |count| count.get() as u64);
    Some(total * 1_000 * processors + stolen().unwrap_or(0))
}

/// For how long in all processors were not there because another virtual machine had them, in nanoseconds. Whoever is kept
/// from running by that counts as running.
fn stolen() -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let all = fs::read_to_string("/proc/stat").ok()?;
    let ticks: u64 = all.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks * TICK_NS)
}

/// How often each kind of blow has hit.
pub fn counts(blows: &[Blow]) -> HashMap<Kind, u64> {
    let mut counts = HashMap::new();
    for blow in blows.iter().filter(|blow| blow.has_hit) {
        *counts.entry(blow.kind).or_default() += 1;
    }
    counts
}

/// So many tenths of a ttl.
fn between(chance: &mut Chance, ttl: Duration, [least, most]: [u32; 2]) -> Duration {
    chance.between(ttl * least / 10, ttl * most / 10)
}

fn in_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
