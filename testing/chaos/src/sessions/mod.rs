//! Clients with sessions whose locks are broken and revoked, on stores with faults: never two holders, and no lie.
//!
//! Workers take several locks each with growing ttls, so that the ttl of their session grows while it lives; they write past a
//! guard and let go. Another process breaks and revokes what it finds. Workers are stopped for longer than a ttl and killed,
//! servers and ways to them break. Between two storms nothing does, and one holder dies whose lock others wait for while it is
//! revoked again and again.

mod breaker;
pub mod judge;
mod pulse;
mod worker;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use leasehold_bench::rng::Rng;
use leasehold_core::config::{Drift, Ttl};
use leasehold_core::time::takeover_bound;

use crate::Result;
use crate::chaos::by_lock::Journals;
use crate::chaos::check::margin;
use crate::chaos::crew::{Member, assignment, between};
use crate::chaos::environment::{Environment, GROUPS, StoreKind};
use crate::chaos::faults::{Fault, Kind, Target};
use crate::chaos::guarded_counter::{CounterLog, CounterServer};
use crate::chaos::now_ns;
use crate::chaos::run::{Machine, waited};
use crate::chaos::timeline::{Lease, leases};
pub use breaker::{Act, BREAKER, HEIR, inherit, work as break_locks};
use judge::{Burial, COLUMNS, Evidence, Verdict};
use pulse::Pulse;
pub use worker::{WORKER, work};

/// The stores where no other is named: those where a session is a record of its own.
pub const STORES: [StoreKind; 3] = [StoreKind::Dynamodb, StoreKind::Etcd, StoreKind::Azure];
/// The workers at once.
const PLACES: usize = 4;
/// The time between two faults of a worker and the length of a stop, and the same of the breaker, in tenths of a ttl.
const CALM: [u32; 2] = [5, 60];
const STOP: [u32; 2] = [1, 80];
/// The length of a stop that is aimed at a holder whose lock was just broken or revoked: its session has not been renewed since.
const AIMED: [u32; 2] = [30, 90];
const CALM_OF_BREAKER: [u32; 2] = [5, 40];
const STOP_OF_BREAKER: [u32; 2] = [1, 25];
/// One fault in this many kills the worker. The others stop it.
const KILLS: u64 = 4;
/// The length of a storm in tenths of a ttl, and that of the calm after it in longest ttls.
const STORM: [u32; 2] = [120, 250];
const REST: u32 = 3;
/// How much longer each answer takes on its way to the breaker: what it has seen is old when it acts.
const DELAY: Duration = Duration::from_millis(100);
/// The longest pause between two looks at a lock where the store wakes nobody, and what requests take on a busy machine.
const POLL: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(4);
/// The time a new process has before its first fault.
const STARTUP: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);
/// The longest wait for the end of the breaker.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which all lines of a stopped process have arrived.
const HEARD: Duration = Duration::from_millis(50);

/// The lines of all processes so far.
struct Board {
    journals: Journals,
    acts: Vec<Act>,
    /// The process whose lock was broken or revoked last.
    hit: Option<usize>,
    log: File,
}

type SharedBoard = Arc<Mutex<Board>>;

/// One store with its processes.
struct Play {
    store: StoreKind,
    environment: Environment,
    counters: CounterServer,
    board: SharedBoard,
    rng: Rng,
    environment_rng: Rng,
    workers: Vec<(Member, Option<u64>)>,
    breaker: Member,
    heir: Member,
    pulse: Pulse,
    faults: Vec<Fault>,
    pressure: Vec<(u64, u64)>,
    burials: Vec<Burial>,
}

/// Plays all stores at once, and prints what became of them.
///
/// # Errors
/// When a promise was broken, or the run proves nothing.
pub fn show(stores: &[StoreKind], time: Duration, seed: u64, folder: &Path, output: &Path) -> Result {
    println!(
        "{PLACES} processes with sessions share {} locks on each store, and one breaks and revokes what they hold. They are stopped \
         for 0.1 to 8 ttl and killed, as are servers, and ways to them break; {:.0} s on all stores at once; seed {seed}.\n",
        worker::LOCKS,
        time.as_secs_f64()
    );
    println!("| store | {COLUMNS} |\n|---|{}", "---:|".repeat(COLUMNS.split('|').count()));
    let results: Vec<std::result::Result<Verdict, String>> = scope(|scope| {
        let play = |store: StoreKind| {
            let (folder, output) = (folder.join(store.name()), output.join(store.name()));
            scope.spawn(move || play(store, time, seed, &folder, &output).map_err(|error| error.to_string()))
        };
        let all: Vec<_> = stores.iter().map(|store| play(*store)).collect();
        all.into_iter().map(|play| play.join().unwrap_or_else(|_| Err("its thread has panicked".to_owned()))).collect()
    });
    let mut broken = Vec::new();
    for (store, result) in stores.iter().zip(results) {
        let all = match result {
            Ok(verdict) => {
                println!("| {} | {verdict} |", store.name());
                let blind = verdict.blind();
                [verdict.broken, blind].concat()
            }
            Err(error) => vec![error],
        };
        broken.extend(all.into_iter().map(|why| format!("{}: {why}", store.name())));
    }
    println!("\nThe lines of all processes are in {}.", output.display());
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

fn play(store: StoreKind, time: Duration, seed: u64, folder: &Path, output: &Path) -> Result<Verdict> {
    fs::create_dir_all(folder)?;
    fs::create_dir_all(output)?;
    let log = File::create(output.join("lines.jsonl"))?;
    let machine = Machine::watch();
    let mut play = Play::open(store, seed, folder, log)?;
    let start = Instant::now();
    while start.elapsed() < time {
        play.storm()?;
        play.calm()?;
    }
    let evidence = play.end(machine)?;
    let faults: String = evidence.faults.iter().map(Fault::line).collect();
    fs::write(output.join("faults.jsonl"), faults)?;
    Ok(Verdict::of(&evidence))
}

impl Play {
    fn open(store: StoreKind, seed: u64, folder: &Path, log: File) -> Result<Self> {
        let mut environment = Environment::open(store, folder)?;
        let counters = CounterServer::start();
        let board = Arc::new(Mutex::new(Board { journals: Journals::default(), acts: Vec::new(), hit: None, log }));
        let mut rng = Rng::new(seed, store as u64);
        let mut workers = Vec::new();
        for place in 0..PLACES {
            workers.push((start(store, &environment, place, &counters, &board, &mut rng)?, None));
        }
        let urls = environment.slow_urls(DELAY);
        let other = |part: &str, urls| {
            let process = lock(&board).journals.open(part.to_owned(), 0);
            let settings = assignment(part.to_owned(), store, urls, Path::new(""));
            Member::start(part, &settings, &environment, 0, process, hear(&board))
        };
        let mut breaker = other(BREAKER, urls)?;
        breaker.next += between(&mut rng, store, CALM_OF_BREAKER);
        let heir = other(HEIR, environment.urls(0))?;
        let pulse = Pulse::feel(environment.slow_urls(Duration::ZERO), store.ttl() / 3)?;
        Ok(Self {
            store,
            environment,
            counters,
            board,
            rng,
            environment_rng: Rng::new(seed, 100 + store as u64),
            workers,
            breaker,
            heir,
            pulse,
            faults: Vec::new(),
            pressure: Vec::new(),
            burials: Vec::new(),
        })
    }

    fn storm(&mut self) -> Result {
        let end = Instant::now() + between(&mut self.rng, self.store, STORM);
        while Instant::now() < end {
            self.tick()?;
            let hit = lock(&self.board).hit.take();
            let is_aimed = hit.is_some() && self.rng.once_in(2);
            for place in 0..self.workers.len() {
                let worker = &self.workers[place].0;
                if is_aimed && Some(worker.process) == hit && !worker.is_stopped {
                    self.stop(place, AIMED);
                } else if Instant::now() >= worker.next {
                    self.inject(place)?;
                }
            }
            if Instant::now() >= self.breaker.next {
                let pause = if self.breaker.stop_or_go_on() { STOP_OF_BREAKER } else { CALM_OF_BREAKER };
                self.breaker.next = Instant::now() + between(&mut self.rng, self.store, pause);
            }
            let over = self.environment.tick(&mut self.environment_rng)?;
            self.faults.extend(over);
        }
        let over = self.environment.undo_all()?;
        self.faults.extend(over);
        self.breaker.go_on();
        (0..self.workers.len()).for_each(|place| self.go_on(place));
        Ok(())
    }

    /// Nothing but what the breaker does happens to the others while one dies and its lock goes to another.
    fn calm(&mut self) -> Result {
        let end = Instant::now() + worker::longest(self.store.ttl()) * REST;
        let mut dead = None;
        while Instant::now() < end && dead.is_none() {
            let place = (self.rng.draw() % PLACES as u64) as usize;
            dead = self.find_holder(place).map(|held| (place, held));
            let pause = Instant::now() + HEARD;
            while Instant::now() < pause {
                self.tick()?;
            }
        }
        if let Some((place, held)) = dead {
            self.bury(place, held)?;
        }
        while Instant::now() < end {
            self.tick()?;
        }
        let next: Vec<Duration> = (0..PLACES).map(|_| between(&mut self.rng, self.store, CALM)).collect();
        self.workers.iter_mut().zip(next).for_each(|((worker, _), pause)| worker.next = Instant::now() + pause);
        Ok(())
    }

    fn tick(&mut self) -> Result {
        for (worker, _) in &mut self.workers {
            worker.lives()?;
        }
        self.breaker.lives()?;
        self.heir.lives()?;
        self.pressure.extend(waited().map(|waited| (now_ns(), waited)));
        sleep(TICK);
        Ok(())
    }

    fn inject(&mut self, place: usize) -> Result {
        if self.rng.once_in(KILLS) {
            self.kill(place)?;
            return self.replace(place);
        }
        if self.workers[place].0.is_stopped {
            self.go_on(place);
            self.workers[place].0.next = Instant::now() + between(&mut self.rng, self.store, CALM);
        } else {
            self.stop(place, STOP);
        }
        Ok(())
    }

    fn stop(&mut self, place: usize, length: [u32; 2]) {
        let (worker, stopped) = &mut self.workers[place];
        *stopped = Some(now_ns());
        worker.stop_or_go_on();
        worker.next = Instant::now() + between(&mut self.rng, self.store, length);
    }

    /// Writes a fault of a worker down.
    fn note(&mut self, place: usize, kind: Kind, from: u64) {
        let target = Target::Worker(name(place, self.workers[place].0.process));
        self.faults.push(Fault { kind, target, from, to: now_ns(), has_hit: true });
    }

    fn go_on(&mut self, place: usize) {
        let (worker, stopped) = &mut self.workers[place];
        worker.go_on();
        if let Some(from) = stopped.take() {
            self.note(place, Kind::Stop, from);
        }
    }

    /// Kills a worker; answers when.
    fn kill(&mut self, place: usize) -> Result<u64> {
        let at = now_ns();
        let (worker, stopped) = &mut self.workers[place];
        worker.child.kill();
        lock(&self.board).journals.end(worker.process, at);
        if let Some(from) = stopped.take() {
            self.note(place, Kind::Stop, from);
        }
        self.note(place, Kind::Kill, at);
        Ok(at)
    }

    fn replace(&mut self, place: usize) -> Result {
        let worker = start(self.store, &self.environment, place, &self.counters, &self.board, &mut self.rng)?;
        self.workers[place] = (worker, None);
        Ok(())
    }

    /// Stops a worker, and lets it go on if it holds nothing; otherwise the answer is the lock and the token.
    fn find_holder(&mut self, place: usize) -> Option<(usize, u64)> {
        let (worker, stopped) = &mut self.workers[place];
        *stopped = Some(now_ns());
        worker.stop_or_go_on();
        let process = worker.process;
        sleep(HEARD);
        let held = lock(&self.board).held(process);
        if held.is_none() {
            self.go_on(place);
        }
        held
    }

    fn bury(&mut self, place: usize, (at, token): (usize, u64)) -> Result {
        let killed = self.kill(place)?;
        self.replace(place)?;
        let word = format!("{} {at} {token}", breaker::BURY);
        self.tell_both(&word);
        let longest = Ttl::new(worker::longest(self.store.ttl()))?;
        let bound = takeover_bound(longest, Duration::ZERO, Drift::default()) + POLL + SLACK;
        let begin = Instant::now();
        let mut granted = None;
        while granted.is_none() && begin.elapsed() < bound {
            self.tick()?;
            granted = lock(&self.board).granted_after(at, token);
        }
        let took = granted.map(|granted| Duration::from_nanos(granted.saturating_sub(killed)));
        self.burials.push(Burial { lock: at, token, took, bound });
        self.tell_both(breaker::REST);
        Ok(())
    }

    fn tell_both(&mut self, word: &str) {
        self.breaker.child.tell(word);
        self.heir.child.tell(word);
    }

    fn end(mut self, machine: Machine) -> Result<Evidence> {
        let over = self.environment.undo_all()?;
        self.faults.extend(over);
        // All that it has done must be written down before the workers are judged.
        self.breaker.child.tell(breaker::HALT);
        let patience = Instant::now() + PATIENCE;
        while self.breaker.child.ended()?.is_none() && Instant::now() < patience {
            sleep(TICK);
        }
        for place in 0..self.workers.len() {
            self.go_on(place);
            let (worker, _) = &mut self.workers[place];
            // This waits until its last line was read.
            worker.child.kill();
        }
        self.breaker.child.kill();
        self.heir.child.kill();
        let counters = (0..worker::LOCKS).map(|lock| self.counters.log(&worker::counter_of(lock)));
        let counters = counters.collect::<Result<Vec<CounterLog>>>()?;
        let mut board = lock(&self.board);
        let longest = worker::longest(self.store.ttl());
        self.faults.sort_by_key(|fault| fault.from);
        Ok(Evidence {
            ttl: u64::try_from(longest.as_nanos())?,
            margin: margin(longest),
            stalls: machine.stalls(),
            slow: self.pulse.stop(),
            pressure: self.pressure,
            journals: std::mem::take(&mut board.journals),
            acts: std::mem::take(&mut board.acts),
            faults: self.faults,
            counters,
            burials: self.burials,
        })
    }
}

/// The name of a worker, which begins with that of its session.
fn name(place: usize, process: usize) -> String {
    format!("w{place}-{process}")
}

fn start(
    store: StoreKind,
    environment: &Environment,
    place: usize,
    counters: &CounterServer,
    board: &SharedBoard,
    rng: &mut Rng,
) -> Result<Member> {
    let group = place % GROUPS;
    let process = {
        let journals = &mut lock(board).journals;
        let process = journals.processes();
        journals.open(name(place, process), group)
    };
    let settings = assignment(name(place, process), store, environment.urls(group), &counters.socket());
    let mut worker = Member::start(WORKER, &settings, environment, group, process, hear(board))?;
    worker.next += STARTUP + between(rng, store, CALM);
    Ok(worker)
}

fn hear(board: &SharedBoard) -> impl FnMut(usize, &str) + Send + 'static {
    let board = Arc::clone(board);
    move |process, line| lock(&board).hear(process, line)
}

impl Board {
    fn hear(&mut self, process: usize, line: &str) {
        // Without the file the run is as good.
        let _ = writeln!(self.log, "{process} {line}");
        match Act::parse(line) {
            Some(act) => {
                let hit = act.lock.zip(act.token);
                self.hit = hit.and_then(|(lock, token)| self.journals.holder(lock, token)).or(self.hit);
                self.acts.push(act);
            }
            None => self.journals.hear(process, line),
        }
    }

    /// A lock that a process holds, and its token.
    fn held(&self, process: usize) -> Option<(usize, u64)> {
        let (now, journals) = (now_ns(), self.journals.of(process));
        let is_held = |lease: &Lease| {
            lease.releasing.is_none() && lease.lost.is_none() && lease.notified.is_none() && lease.until > now
        };
        let last = |own| leases(std::slice::from_ref(own)).into_iter().rfind(is_held);
        journals.iter().enumerate().find_map(|(lock, own)| last(own).map(|lease| (lock, lease.token)))
    }

    /// The time of the first grant of a lock with a token above this one.
    fn granted_after(&self, lock: usize, token: u64) -> Option<u64> {
        self.journals.granted(lock).filter(|(_, other)| *other > token).map(|(at, _)| at).min()
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
