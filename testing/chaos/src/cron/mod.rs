//! A job that several machines start at each of its times, as runs and, for comparison, under plain locks.
//!
//! Eight processes, whose clocks are up to 3 s apart, start the job in each key. Some are killed in the midst of it, and
//! some stand still for longer than a lease. The work is a write to a resource that a guard protects; the resource is the
//! parent process, to which every process writes a line before it works, after its work, and for each answer of the store.

mod board;
mod show;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leasehold::ClientBuilder;
use leasehold::blocking::Client;
use leasehold_bench::child::Child;
use leasehold_bench::rng::Rng;

use crate::Result;
use crate::chaos::environment::{Environment, StoreKind};
use crate::chaos::worker::QUORUM;
pub use board::{Board, Counts};
pub use show::show;
pub use worker::{MACHINE, Manner, Task, work};

const PROCESSES: usize = 8;
/// The clocks of the first and the last process differ by this.
const CLOCKS: Duration = Duration::from_secs(3);
/// The time between two keys, and that where the store is a slow emulator.
const PERIOD: Duration = Duration::from_millis(200);
const SLOW_PERIOD: Duration = Duration::from_millis(800);
/// The ttl of leases, unless a quorum sets a shorter bound.
const TTL: Duration = Duration::from_secs(2);
/// The time in which processes start.
const START: Duration = Duration::from_secs(3);
/// A process that starts again makes up for the keys of this time, as anacron does.
const CATCH_UP: Duration = Duration::from_secs(5);
/// The shortest and the longest time between two blows to processes.
const BLOWS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// A process that is stopped may take up to this many ttls to go on.
const LONGEST_STOP: u32 = 3;
/// The time in which all processes must have ended behind the last key.
const PATIENCE: Duration = Duration::from_secs(90);

/// A machine: a process with a clock of its own.
struct Machine {
    child: Child,
    offset: Duration,
    stopped_until: Option<Instant>,
    has_ended: Arc<Mutex<bool>>,
}

/// Plays all keys on one kind of store.
///
/// # Errors
/// When the store or a process cannot be started, or processes do not end.
pub fn play(store: StoreKind, manner: Manner, keys: u64, seed: u64, folder: &Path) -> Result<Counts> {
    std::fs::create_dir_all(folder)?;
    let environment = Environment::open(store, folder)?;
    let urls = environment.urls(0);
    let ttl = store.max_ttl().unwrap_or(TTL).min(TTL);
    let period = match store {
        StoreKind::Dynamodb | StoreKind::Clouds | StoreKind::Azure => SLOW_PERIOD,
        _ => PERIOD,
    };
    let board = Arc::new(Mutex::new(Board::new(keys)));
    let mut rng = Rng::new(seed, 0);
    let begin = worker::unix_ms() + START.as_millis() as u64;
    let task = |offset: Duration, first: u64, delay: u64| Task {
        manner,
        ttl,
        begin,
        period,
        offset,
        keys: first..keys,
        seed: delay,
        urls: urls.clone(),
    };
    let mut machines = Vec::new();
    for index in 0..PROCESSES {
        let offset = CLOCKS * index as u32 / (PROCESSES as u32 - 1);
        machines.push(Machine::start(&task(offset, 0, rng.draw()), &board)?);
    }
    let last = begin + (period * keys as u32).as_millis() as u64;
    let end = Instant::now() + Duration::from_millis(last - worker::unix_ms()) + PATIENCE;
    let mut next = Instant::now() + START;
    while machines.iter().any(|machine| !machine.has_ended()) {
        std::thread::sleep(Duration::from_millis(5));
        machines.iter_mut().for_each(Machine::go_on);
        let now = Instant::now();
        if now > end {
            return Err(format!("processes have not ended on {}", store.name()).into());
        }
        if now < next || worker::unix_ms() >= last {
            continue;
        }
        next = now + rng.between(BLOWS[0], BLOWS[1]);
        let machine = &mut machines[(rng.draw() % PROCESSES as u64) as usize];
        if machine.stopped_until.is_some() {
            continue;
        }
        if rng.once_in(3) {
            machine.child.stop();
            machine.stopped_until = Some(now + rng.between(ttl, ttl * LONGEST_STOP));
            lock(&board).stops += 1;
        } else {
            machine.child.kill();
            lock(&board).kills += 1;
            let since = worker::unix_ms() + machine.offset.as_millis() as u64;
            let first = since.saturating_sub(begin + CATCH_UP.as_millis() as u64) / period.as_millis() as u64;
            *machine = Machine::start(&task(machine.offset, first.min(keys), rng.draw()), &board)?;
        }
    }
    drop(machines);
    let mut counts = lock(&board).counts();
    if manner != Manner::Locks {
        counts.marked = marked(&urls, keys)?;
    }
    Ok(counts)
}

/// How many keys the store shows as done.
fn marked(urls: &[String], keys: u64) -> Result<u64> {
    let client = Client::connect_with(builder(urls.len()), urls)?;
    let mut marked = 0;
    for key in 0..keys {
        marked += u64::from(client.inspect_run(worker::JOB, Some(&key.to_string()))?.done.is_some());
    }
    Ok(marked)
}

/// The settings of a client for that many stores.
pub(crate) fn builder(stores: usize) -> ClientBuilder {
    let builder = ClientBuilder::default();
    if stores > 1 { builder.quorum_id(QUORUM) } else { builder }
}

impl Machine {
    fn start(task: &Task, board: &Arc<Mutex<Board>>) -> Result<Self> {
        let has_ended = Arc::new(Mutex::new(false));
        let (board, ended) = (Arc::clone(board), Arc::clone(&has_ended));
        let child = Child::start(&[MACHINE, &task.text()], move |line| match line {
            Some(line) => lock(&board).hear(line),
            None => *lock(&ended) = true,
        })?;
        Ok(Self { child, offset: task.offset, stopped_until: None, has_ended })
    }

    fn has_ended(&self) -> bool {
        *lock(&self.has_ended)
    }

    fn go_on(&mut self) {
        if self.stopped_until.is_some_and(|until| Instant::now() >= until) {
            self.stopped_until = None;
            self.child.go_on();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
