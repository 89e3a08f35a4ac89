//! Workers that share three permits of one semaphore, on stores with faults: never more than three hold one at a time.
//!
//! Eight processes ask for a permit, keep it for a while and let it go. Some are killed with it, some are stopped for longer
//! than a lease; meanwhile servers and ways to them break as for the lock. Every process writes down what it believes and when.

mod tally;
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
pub use tally::{Counts, Tally};
pub use worker::{WORKER, work};

/// The number of permits of the semaphore.
pub const PERMITS: usize = 3;
/// The stores where no other is named: one of each kind of promise.
pub const STORES: [StoreKind; 4] = [StoreKind::Redis, StoreKind::Sqlite, StoreKind::Dynamodb, StoreKind::Quorum];
const WORKERS: usize = 8;
/// The time between two faults of a worker, in tenths of a ttl, and the length of a stop.
const CALM: [u32; 2] = [5, 50];
const STOP: [u32; 2] = [1, 30];
/// One fault in this many kills the worker. The others stop it.
const KILLS: u64 = 4;
const TICK: Duration = Duration::from_millis(2);
/// The time a new process has before its first fault.
const STARTUP: Duration = Duration::from_secs(1);

/// Plays the semaphore on each store, and prints what became of it.
///
/// # Errors
/// When more processes than there are permits held one, two held the same one, or nobody ever waited.
pub fn show(stores: &[StoreKind], each: Duration, seed: u64, folder: &Path) -> Result {
    println!(
        "Eight processes share {PERMITS} permits. They are stopped for 0.1 to 3 ttl and killed, as are servers, and ways to them \
         break; {:.0} s in each store; seed {seed}.\n",
        each.as_secs_f64()
    );
    println!(
        "| store | grants | most at once | of one permit at once | tokens twice | losses | errors | killed | stopped | store faults |"
    );
    println!("|---|{}", "---:|".repeat(9));
    let mut broken = Vec::new();
    for store in stores {
        let counts = play(*store, each, seed, &folder.join(store.name()))
            .map_err(|error| format!("{}: {error}", store.name()))?;
        println!("| {} | {counts} |", store.name());
        broken.extend(counts.broken().into_iter().map(|why| format!("{}: {why}", store.name())));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

fn play(store: StoreKind, time: Duration, seed: u64, folder: &Path) -> Result<Counts> {
    std::fs::create_dir_all(folder)?;
    let mut environment = Environment::open(store, folder)?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut rng = Rng::new(seed, store as u64);
    let mut environment_rng = Rng::new(seed, 100 + store as u64);
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        workers.push(start(store, &environment, number % GROUPS, &tally, &mut rng)?);
    }
    let start = Instant::now();
    while start.elapsed() < time {
        for worker in &mut workers {
            worker.lives()?;
            if Instant::now() >= worker.next {
                inject(worker, store, &environment, &tally, &mut rng)?;
            }
        }
        let faults = environment.tick(&mut environment_rng)?;
        lock(&tally).store_faults += faults.len() as u64;
        sleep(TICK);
    }
    let faults = environment.undo_all()?;
    for mut worker in workers {
        // This waits until its last line was read.
        worker.child.kill();
    }
    let mut tally = lock(&tally);
    tally.store_faults += faults.len() as u64;
    Ok(tally.counts(PERMITS))
}

fn start(
    store: StoreKind,
    environment: &Environment,
    group: usize,
    tally: &Arc<Mutex<Tally>>,
    rng: &mut Rng,
) -> Result<Member> {
    let process = lock(tally).open();
    let assignment = assignment(format!("worker-{process}"), store, environment.urls(group), Path::new(""));
    let lines = Arc::clone(tally);
    let hear = move |process, line: &str| lock(&lines).hear(process, line);
    let mut worker = Member::start(WORKER, &assignment, environment, group, process, hear)?;
    worker.next += STARTUP + between(rng, store, CALM);
    Ok(worker)
}

fn inject(
    worker: &mut Member,
    store: StoreKind,
    environment: &Environment,
    tally: &Arc<Mutex<Tally>>,
    rng: &mut Rng,
) -> Result {
    let mut wait = CALM;
    if rng.once_in(KILLS) {
        worker.child.kill();
        lock(tally).end(worker.process, now_ns());
        *worker = start(store, environment, worker.group, tally, rng)?;
        return Ok(());
    }
    if worker.stop_or_go_on() {
        lock(tally).stops += 1;
        wait = STOP;
    }
    worker.next = Instant::now() + between(rng, store, wait);
    Ok(())
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
