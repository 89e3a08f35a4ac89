//! HTTP requests with an `Idempotency-Key`, which several clients send at once and again, to services in two processes each.
//!
//! Processes are killed, and stand still for up to three ttls. A client sends a request until it is answered, each time to any of
//! the two. The handlers tell the parent process of their effects, which it holds against the answers: an effect that came
//! twice has to be of a process that was killed or stopped meanwhile, or whose client was told that nothing is certain.

mod board;
mod client;
mod service;
mod show;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use leasehold::blocking::Client;
use leasehold_bench::rng::Rng;

use crate::Result;
use crate::chaos::environment::{Environment, StoreKind};
use crate::cron;
pub use board::{Board, Counts};
pub use client::{EACH, Order, orders};
pub use service::Service;
use service::{Doors, PROCESSES, Process, Setup, task, ttl};
pub use show::show;

/// The stores where no other is named.
pub const STORES: [StoreKind; 2] = [StoreKind::Sqlite, StoreKind::Redis];
const CLIENTS: u64 = 12;
/// The shortest and the longest time between two blows to processes.
const BLOWS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(900)];
/// A process that is stopped may take up to this many ttls to go on.
const LONGEST_STOP: u32 = 3;
/// The time in which processes must listen.
const PATIENCE: Duration = Duration::from_secs(90);
const TICK: Duration = Duration::from_millis(5);

/// Sends requests to one service on one store.
///
/// # Errors
/// When the store or a process cannot be started.
pub fn play(
    store: StoreKind,
    service: Service,
    is_protected: bool,
    requests: u64,
    seed: u64,
    folder: &Path,
) -> Result<Counts> {
    std::fs::create_dir_all(folder)?;
    let environment = Environment::open(store, folder)?;
    let urls = environment.urls(0);
    let mut rng = Rng::new(seed, service as u64);
    let keys = requests.div_ceil(EACH);
    let board = Arc::new(Mutex::new(Board::new(keys, urls.len() > 1)));
    let doors = Doors::default();
    let task = task(store, &urls, is_protected);
    let setup = Setup { service, task, doors: doors.clone(), board: Arc::clone(&board) };
    let mut processes = (0..PROCESSES).map(|slot| setup.start(slot)).collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    while !doors.are_open() {
        processes.iter_mut().try_for_each(|process| setup.lives(process))?;
        if start.elapsed() > PATIENCE {
            return Err(format!("{} does not listen", service.name()).into());
        }
        sleep(TICK);
    }
    let orders = Mutex::new(orders(requests, &mut rng));
    std::thread::scope(|scope| {
        let ask = |number| {
            let (orders, doors, board, rng) = (&orders, &doors, &*board, Rng::new(seed, 100 + number));
            move || client::ask_all(orders, doors, board, rng)
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(ask(number))).collect();
        let is_over = || clients.iter().all(std::thread::ScopedJoinHandle::is_finished);
        disturb(&setup, &mut processes, ttl(store), &mut rng, is_over)
    })?;
    processes.into_iter().for_each(|process| setup.end(process));
    let mut counts = lock(&board).counts();
    if is_protected {
        counts.marked = marked(&urls)?;
    }
    Ok(counts)
}

/// Kills and stops processes until all is over.
fn disturb(
    setup: &Setup,
    processes: &mut [Process],
    ttl: Duration,
    rng: &mut Rng,
    is_over: impl Fn() -> bool,
) -> Result {
    let mut next = Instant::now();
    while !is_over() {
        sleep(TICK);
        for process in processes.iter_mut() {
            setup.go_on(process);
            setup.lives(process)?;
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + rng.between(BLOWS[0], BLOWS[1]);
        let slot = (rng.draw() % PROCESSES as u64) as usize;
        let up = processes.iter().filter(|process| setup.is_up(process)).count();
        // Now and then all are down. On a slow machine, they would be so all the time.
        if !setup.is_up(&processes[slot]) || up < PROCESSES && !rng.once_in(4) {
            continue;
        }
        if rng.once_in(3) {
            setup.stop(&mut processes[slot], rng.between(ttl / 4, ttl * LONGEST_STOP));
        } else {
            setup.replace(&mut processes[slot])?;
        }
    }
    Ok(())
}

/// How many requests the store shows as done.
fn marked(urls: &[String]) -> Result<u64> {
    let client = Client::connect_with(cron::builder(urls.len()), urls)?;
    let mut marked = 0;
    for run in client.runs("POST /charge@") {
        marked += u64::from(run?.done.is_some());
    }
    Ok(marked)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
