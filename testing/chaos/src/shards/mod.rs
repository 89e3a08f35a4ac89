//! Workers that share 16 shards, on stores with faults: a shard never has two holders, and shares become even in time.
//!
//! Five processes join and leave; some are killed, some are stopped for longer than a lease, and servers and ways to them break.
//! After each such storm nothing happens until the shares are even. Every process writes down what it believes and when.

mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use leasehold_bench::rng::Rng;

use crate::Result;
use crate::chaos::crew::{Member, assignment, between};
use crate::chaos::environment::{Environment, GROUPS, StoreKind};
use crate::chaos::now_ns;
use crate::permits::{Counts, Tally};
pub use worker::{WORKER, work};

/// The number of shards.
pub const SHARDS: usize = 16;
/// The stores where no other is named: one of each kind of promise.
pub const STORES: [StoreKind; 4] = [StoreKind::Redis, StoreKind::Sqlite, StoreKind::Dynamodb, StoreKind::Quorum];
const WORKERS: usize = 5;
/// The shares of so many workers, in order.
const EVEN: [usize; WORKERS] = [3, 3, 3, 3, 4];
/// The length of a storm, the time between two faults of a worker, and the length of a stop, in tenths of a ttl.
const STORM: [u32; 2] = [60, 200];
const CALM: [u32; 2] = [10, 60];
const STOP: [u32; 2] = [1, 30];
const TICK: Duration = Duration::from_millis(2);
/// The longest pause between two looks at a lock where the store wakes nobody.
const POLL: Duration = Duration::from_secs(2);
/// The time a new process has to start and connect.
const STARTUP: Duration = Duration::from_secs(3);

/// The journals, and what each process last said of its share.
#[derive(Default)]
struct Board {
    tally: Tally,
    /// The shards that a process holds, and the members that it sees.
    seen: Vec<(usize, usize)>,
}

struct Worker {
    member: Member,
    is_away: bool,
}

/// The result of one store.
struct Played {
    counts: Counts,
    leaves: u64,
    /// The times from the end of each storm until the shares were even.
    settled: Vec<Duration>,
    bound: Duration,
}

/// Plays the shards on each store, and prints what became of them.
///
/// # Errors
/// When two processes held one shard, a token was granted twice, or the shares did not become even in time.
pub fn show(stores: &[StoreKind], each: Duration, seed: u64, folder: &Path) -> Result {
    println!(
        "Five processes share {SHARDS} shards. They leave and join, are stopped for 0.1 to 3 ttl and killed, as are servers, and \
         ways to them break; {:.0} s in each store; seed {seed}.\n",
        each.as_secs_f64()
    );
    println!(
        "| store | grants | most at once | of one shard at once | tokens twice | losses | errors | killed | stopped | store faults \
         | left | storms | even again, mean | at most | promised |"
    );
    println!("|---|{}", "---:|".repeat(14));
    let mut broken = Vec::new();
    for store in stores {
        let played = play(*store, each, seed, &folder.join(store.name()))
            .map_err(|error| format!("{}: {error}", store.name()))?;
        println!("| {} | {} |", store.name(), played.row());
        broken.extend(played.broken().into_iter().map(|why| format!("{}: {why}", store.name())));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

fn play(store: StoreKind, time: Duration, seed: u64, folder: &Path) -> Result<Played> {
    std::fs::create_dir_all(folder)?;
    let mut environment = Environment::open(store, folder)?;
    let board = Arc::new(Mutex::new(Board::default()));
    let mut rng = Rng::new(seed, store as u64);
    let mut environment_rng = Rng::new(seed, 100 + store as u64);
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        workers.push(Worker::start(store, &environment, number % GROUPS, &board, &mut rng)?);
    }
    let (mut leaves, mut settled, bound) = (0, Vec::new(), bound(store));
    let start = Instant::now();
    while start.elapsed() < time {
        let storm = Instant::now() + between(&mut rng, store, STORM);
        while Instant::now() < storm {
            for worker in &mut workers {
                worker.member.lives()?;
                if Instant::now() >= worker.member.next {
                    leaves += worker.inject(store, &environment, &board, &mut rng)?;
                }
            }
            let faults = environment.tick(&mut environment_rng)?;
            lock(&board).tally.store_faults += faults.len() as u64;
            sleep(TICK);
        }
        let faults = environment.undo_all()?;
        lock(&board).tally.store_faults += faults.len() as u64;
        workers.iter_mut().for_each(Worker::come_back);
        settled.push(settle(&board, &workers, bound)?);
        workers.iter_mut().for_each(|worker| worker.member.next = Instant::now() + between(&mut rng, store, CALM));
    }
    for mut worker in workers {
        // This waits until its last line was read.
        worker.member.child.kill();
    }
    let counts = lock(&board).tally.counts(SHARDS);
    Ok(Played { counts, leaves, settled, bound })
}

/// The time until the shares are even: that of the documentation for the slowest stores, and what a process needs to start.
fn bound(store: StoreKind) -> Duration {
    store.ttl() * 204 / 100 + worker::look_every(store.ttl()) * 2 + POLL + STARTUP
}

fn settle(board: &Mutex<Board>, workers: &[Worker], bound: Duration) -> Result<Duration> {
    let calm = Instant::now();
    loop {
        let seen: Vec<(usize, usize)> = {
            let board = lock(board);
            workers.iter().map(|worker| board.seen[worker.member.process]).collect()
        };
        let mut held: Vec<usize> = seen.iter().map(|(held, _)| *held).collect();
        held.sort_unstable();
        if held == EVEN && seen.iter().all(|(_, members)| *members == WORKERS) {
            return Ok(calm.elapsed());
        }
        if calm.elapsed() > bound {
            return Err(format!("shares are not even after {bound:.1?}: held and members {seen:?}").into());
        }
        sleep(TICK);
    }
}

impl Worker {
    fn start(
        store: StoreKind,
        environment: &Environment,
        group: usize,
        board: &Arc<Mutex<Board>>,
        rng: &mut Rng,
    ) -> Result<Self> {
        let process = {
            let mut board = lock(board);
            board.seen.push((0, 0));
            board.tally.open()
        };
        let assignment = assignment(format!("worker-{process}"), store, environment.urls(group), Path::new(""));
        let lines = Arc::clone(board);
        let hear = move |process, line: &str| lock(&lines).hear(process, line);
        let mut member = Member::start(WORKER, &assignment, environment, group, process, hear)?;
        member.next += between(rng, store, CALM);
        Ok(Self { member, is_away: false })
    }

    /// One fault; answers the number of workers that leave in order.
    fn inject(
        &mut self,
        store: StoreKind,
        environment: &Environment,
        board: &Arc<Mutex<Board>>,
        rng: &mut Rng,
    ) -> Result<u64> {
        let mut wait = CALM;
        let mut leaves = 0;
        match rng.draw() % 4 {
            0 => {
                self.member.child.kill();
                lock(board).tally.end(self.member.process, now_ns());
                *self = Self::start(store, environment, self.member.group, board, rng)?;
                return Ok(0);
            }
            1 => {
                self.member.child.tell(if self.is_away { worker::JOIN } else { worker::LEAVE });
                self.is_away = !self.is_away;
                leaves = u64::from(self.is_away);
            }
            _ if self.member.stop_or_go_on() => {
                lock(board).tally.stops += 1;
                wait = STOP;
            }
            _ => {}
        }
        self.member.next = Instant::now() + between(rng, store, wait);
        Ok(leaves)
    }

    fn come_back(&mut self) {
        self.member.go_on();
        if std::mem::take(&mut self.is_away) {
            self.member.child.tell(worker::JOIN);
        }
    }
}

impl Board {
    fn hear(&mut self, process: usize, line: &str) {
        match worker::seen(line) {
            Some(seen) => self.seen[process] = seen,
            None => self.tally.hear(process, line),
        }
    }
}

impl Played {
    fn row(&self) -> String {
        let seconds: Vec<f64> = self.settled.iter().map(Duration::as_secs_f64).collect();
        let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let most = seconds.iter().copied().fold(0.0, f64::max);
        let (storms, bound) = (seconds.len(), self.bound.as_secs_f64());
        format!("{} | {} | {storms} | {mean:.1} s | {most:.1} s | {bound:.1} s", self.counts, self.leaves)
    }

    fn broken(&self) -> Vec<String> {
        self.counts.broken().into_iter().map(|what| what.replace("permit", "shard")).collect()
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
