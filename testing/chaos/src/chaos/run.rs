//! One run: workers use one store while the injector stops and kills them and breaks what they need.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, sleep, spawn};
use std::time::{Duration, Instant};

use leasehold_bench::child::Child;
use leasehold_bench::rng::Rng;

use super::check::{Evidence, margin};
use super::environment::{Environment, GROUPS, StoreKind};
use super::faults::{Fault, Kind, Target};
use super::guarded_counter::{BARE, CounterServer, GUARDED, LOCKED};
use super::now_ns;
use super::pauses::Span;
use super::worker::{Assignment, LOOK, STALL};
use super::workers::{Language, SharedJournals, WorkerSpec, lock};
use crate::Result;

/// The time between two random faults of a worker, in tenths of a ttl.
const CALM: [u32; 2] = [5, 50];
/// One random fault in this many kills the worker. The others stop it.
const KILLS: u64 = 6;
/// The time between two faults aimed at the holder, in tenths of a ttl. Random faults alone hit it too rarely.
const AIM: [u32; 2] = [2, 25];
/// The length of one turn of the loop.
const TICK: Duration = Duration::from_millis(2);
/// The time a new process has before its first fault.
const STARTUP: Duration = Duration::from_secs(1);

/// The result of a run.
pub struct Outcome {
    /// The store that the workers used.
    pub store: StoreKind,
    /// The input of the checker.
    pub evidence: Evidence,
    /// The start and the end, in nanoseconds.
    pub span: (u64, u64),
    /// The names of the workers.
    pub workers: Vec<String>,
    /// The reason why no network could be cut.
    pub no_network: Option<String>,
}

/// A worker process.
struct RunningWorker {
    spec: WorkerSpec,
    child: Child,
    journal: usize,
    next: Instant,
    /// The fault that has stopped it.
    stopped: Option<Fault>,
}

/// Lets the workers use a store for as long as `time`, with the faults of `seed`. Journals are written to `output`.
///
/// # Errors
/// When something cannot be started, or a worker ends by itself.
pub fn run(store: StoreKind, time: Duration, seed: u64, folder: &Path, output: &Path) -> Result<Outcome> {
    fs::create_dir_all(folder)?;
    fs::create_dir_all(output)?;
    let counters = CounterServer::start();
    let mut environment = Environment::open(store, folder)?;
    let journals = SharedJournals::default();
    let mut rng = Rng::new(seed, store as u64);
    let mut environment_rng = Rng::new(seed, 100 + store as u64);
    let mut workers = Vec::new();
    let begin = now_ns();
    for group in 0..GROUPS {
        let stores = environment.urls(group);
        for language in Language::ALL.into_iter().filter(|language| language.reaches(&stores)) {
            let assignment = Assignment {
                name: format!("{}-{}", language.name(), group + 1),
                stores: stores.clone(),
                max_ttl_ms: store.max_ttl().map(in_ms),
                ttl_ms: in_ms(store.ttl()),
                counters: counters.socket(),
            };
            let spec = WorkerSpec { language, group, assignment, inside: environment.inside(group) };
            let (child, journal) = spec.start(&journals, output)?;
            let next = Instant::now() + STARTUP + between(&mut rng, store.ttl(), CALM);
            workers.push(RunningWorker { spec, child, journal, next, stopped: None });
        }
    }
    let mut faults = Vec::new();
    let mut pressure = Vec::new();
    let machine = Machine::watch();
    let start = Instant::now();
    let mut aim = start + between(&mut rng, store.ttl(), AIM);
    while start.elapsed() < time {
        let mut target = None;
        if Instant::now() >= aim {
            aim = Instant::now() + between(&mut rng, store.ttl(), AIM);
            target = lock(&journals).holder();
        }
        for worker in &mut workers {
            if let Some(status) = worker.child.ended()? {
                return Err(format!("{} has ended by itself: {status}", worker.spec.name()).into());
            }
            let is_aimed_at = target == Some(worker.journal) && worker.stopped.is_none();
            if Instant::now() >= worker.next || is_aimed_at {
                worker.inject(store.ttl(), &mut rng, &journals, output, &mut faults)?;
            }
        }
        check_lines(&journals)?;
        faults.extend(environment.tick(&mut environment_rng)?);
        pressure.extend(waited().map(|waited| (now_ns(), waited)));
        sleep(TICK);
    }
    faults.extend(environment.undo_all()?);
    let mut names = Vec::new();
    for mut worker in workers {
        if let Some(status) = worker.child.ended()? {
            return Err(format!("{} has ended by itself: {status}", worker.spec.name()).into());
        }
        lock(&journals).end(worker.journal, now_ns());
        if let Some(mut fault) = worker.stopped.take() {
            fault.to = now_ns();
            faults.push(fault);
        }
        // This waits until its last line was read.
        worker.child.kill();
        names.push(worker.spec.name().to_owned());
    }
    check_lines(&journals)?;
    pressure.extend(waited().map(|waited| (now_ns(), waited)));
    let stalls = machine.stalls();
    let end = now_ns();
    faults.sort_by_key(|fault| fault.from);
    fs::write(output.join("faults.jsonl"), faults.iter().map(Fault::line).collect::<String>())?;
    let journals = lock(&journals).take();
    let evidence = Evidence {
        ttl: u64::try_from(store.ttl().as_nanos())?,
        margin: margin(store.ttl()),
        is_file: store == StoreKind::Sqlite,
        stalls,
        pressure,
        journals,
        faults,
        bare: counters.log(BARE)?,
        locked: counters.log(LOCKED)?,
        guarded: counters.log(GUARDED)?,
    };
    Ok(Outcome { store, evidence, span: (begin, end), workers: names, no_network: environment.no_network.take() })
}

impl RunningWorker {
    fn inject(
        &mut self,
        ttl: Duration,
        rng: &mut Rng,
        journals: &SharedJournals,
        output: &Path,
        faults: &mut Vec<Fault>,
    ) -> Result {
        let calm = between(rng, ttl, CALM);
        let from = now_ns();
        let target = || Target::Worker(self.spec.name().to_owned());
        let fault = |kind, to| Fault { kind, target: target(), from, to, has_hit: true };
        if let Some(stop) = &mut self.stopped
            && !rng.once_in(KILLS)
        {
            self.child.go_on();
            stop.to = now_ns();
            faults.extend(self.stopped.take());
            self.next = Instant::now() + calm;
        } else if self.stopped.is_some() || rng.once_in(KILLS) {
            lock(journals).end(self.journal, from);
            self.child.kill();
            faults.push(fault(Kind::Kill, now_ns()));
            faults.extend(self.stopped.take().map(|stop| Fault { to: now_ns(), ..stop }));
            (self.child, self.journal) = self.spec.start(journals, output)?;
            self.next = Instant::now() + STARTUP + calm;
        } else {
            self.child.stop();
            self.stopped = Some(fault(Kind::Stop, u64::MAX));
            self.next = Instant::now() + rng.between(ttl / 10, ttl * 3);
        }
        Ok(())
    }
}

fn check_lines(journals: &SharedJournals) -> Result {
    lock(journals).bad_line.take().map_or(Ok(()), |bad_line| Err(bad_line.into()))
}

/// A thread that sleeps in short steps and writes down each step that took too long.
pub(crate) struct Machine {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Span>>,
}

impl Machine {
    pub(crate) fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = spawn(move || {
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
        Self { is_over, thread }
    }

    pub(crate) fn stalls(self) -> Vec<Span> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The total time for which a process may have waited for a processor, in nanoseconds, where the kernel counts it.
pub(crate) fn waited() -> Option<u64> {
    let pressure = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total: u64 = pressure.lines().next()?.split_once("total=")?.1.trim().parse().ok()?;
    // It counts the mean of all processors, and a process may have waited for a single one.
    let processors = available_parallelism().map_or(1, |count| count.get() as u64);
    Some(total * 1_000 * processors + stolen().unwrap_or(0))
}

/// The total time for which another virtual machine had the processors, in nanoseconds. The kernel counts a process
/// that is kept from running by that as running.
fn stolen() -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let all = fs::read_to_string("/proc/stat").ok()?;
    let ticks: u64 = all.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks * TICK_NS)
}

/// The number of faults of each kind that had an effect.
pub fn counts(faults: &[Fault]) -> HashMap<Kind, u64> {
    let mut counts = HashMap::new();
    for fault in faults.iter().filter(|fault| fault.has_hit) {
        *counts.entry(fault.kind).or_default() += 1;
    }
    counts
}

/// A random length, in tenths of a ttl.
fn between(rng: &mut Rng, ttl: Duration, [least, most]: [u32; 2]) -> Duration {
    rng.between(ttl * least / 10, ttl * most / 10)
}

fn in_ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
