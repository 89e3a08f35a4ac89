//! The cost of the core itself: no store, no clock read, no socket; and of a whole client, on a store in memory. Times are of
//! this machine; allocations and bytes are exact.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leasehold_bench::records::Case;
use leasehold_core::op::{Applied, Op, Outcome};
use leasehold_core::{
    Client, Config, LockId, LockOptions, Monotonic, NodeConfig, Now, OneOrMany, Output, Resource, Token, Transmit, Wait,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system allocator unchanged; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (cycles, leases) = if quick { (20_000, 10_000) } else { (200_000, 100_000) };
    println!("leasehold-core {}, {} build", env!("CARGO_PKG_VERSION"), build());
    cycle(cycles);
    hold(leases);
    wait(10_000);
    pair(cycles);
}

const fn build() -> &'static str {
    if cfg!(debug_assertions) { "checked" } else { "release" }
}

fn at(ms: u64) -> Now {
    Now { monotonic: Monotonic::from_ns((1_000_000 + ms) * 1_000_000), unix_ms: 1_700_000_000_000 + ms }
}

fn client() -> Client {
    Client::new(Config::new(vec![NodeConfig::default()]).unwrap(), [7; 32], at(0))
}

fn options() -> LockOptions {
    LockOptions::builder().owner("host:1:main").build().unwrap()
}

/// Says yes to everything.
fn agree(transmit: &Transmit) -> OneOrMany<Outcome> {
    let outcome = |op: &Op| match op {
        Op::Acquire(acquire) => Applied::Acquired { counter: acquire.floor },
        Op::Renew(_) => Applied::Renewed,
        Op::Release(_) => Applied::Released,
        Op::Finish(_) => Applied::Finished,
        Op::Revoke(_) => Applied::Revoked,
        Op::Tell(_) => Applied::Told,
        Op::Raise(raise) => Applied::Raised { counter: raise.token },
        Op::Read => Applied::Acquired { counter: Token::ZERO },
    };
    transmit.ops.iter().map(|op| Outcome::Applied(outcome(&op.op))).collect()
}

/// Answers all requests until nothing is left to do; how many requests there were.
fn settle(client: &mut Client, now: Now) -> usize {
    let mut requests = 0;
    loop {
        match client.poll_output(now) {
            Output::Transmit(transmit) => {
                requests += 1;
                client.handle_response(transmit.id, Ok(agree(&transmit)), now);
            }
            Output::WakeAt(_) => return requests,
            output => {
                black_box(output);
            }
        }
    }
}

/// Acquire, renew and release of one lock, again and again: the median of eleven rounds.
fn cycle(cycles: u64) {
    let mut client = client();
    let (options, resource) = (options(), Resource::new("invoice/42").unwrap());
    let mut ms = 0;
    let mut one = |lock: u64| {
        client.acquire(LockId::new(lock), resource.clone(), options.clone(), &[1; 16], at(ms)).unwrap();
        settle(&mut client, at(ms));
        ms += 10_000;
        client.handle_timeout(&[1; 16], at(ms));
        assert_eq!(settle(&mut client, at(ms)), 1, "one renewal");
        client.release(LockId::new(lock), at(ms)).unwrap();
        settle(&mut client, at(ms));
    };
    one(0);
    let before = ALLOCATIONS.load(Relaxed);
    one(1);
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    let mut lock = 2;
    let mut rounds: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..cycles / 11 {
                one(lock);
                lock += 1;
            }
            start.elapsed().as_nanos() as f64 / (cycles / 11) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "acquire + renew + release: {:.2} us (fastest round {:.2}), {allocations} allocations",
        rounds[5] / 1_000.0,
        rounds[0] / 1_000.0
    );
    Case("acquire, renew and release", "time", "us").alone(rounds[5] / 1_000.0);
    Case("acquire, renew and release", "allocations", "1").alone(allocations as f64);
}

/// Many leases in one client: memory of each, and what one round of heartbeats costs.
fn hold(leases: u64) {
    let names: Vec<Resource> = (0..leases).map(|n| Resource::new(&format!("invoice/{n}")).unwrap()).collect();
    let options = options();
    let mut client = client();
    let before = BYTES.load(Relaxed);
    for (n, name) in names.iter().enumerate() {
        client.acquire(LockId::new(n as u64), name.clone(), options.clone(), &[1; 16], at(0)).unwrap();
        settle(&mut client, at(0));
    }
    let bytes = BYTES.load(Relaxed) - before;
    assert_eq!(client.stats().held, leases as usize);
    println!(
        "{leases} leases held: {:.0} bytes each, without the name and options they share",
        bytes as f64 / leases as f64
    );
    Case("one lease among many", "memory", "bytes").alone(bytes as f64 / leases as f64);

    // The host sleeps until the core wants to be woken, for one whole ttl; only the core's own time is counted.
    let (mut busy, mut requests, mut renewals, mut ms) = (Duration::ZERO, 0, 0, 0);
    while ms < 30_000 {
        let now = at(ms);
        let start = Instant::now();
        client.handle_timeout(&[1; 16], now);
        busy += start.elapsed();
        loop {
            let start = Instant::now();
            let output = client.poll_output(now);
            busy += start.elapsed();
            match output {
                Output::Transmit(transmit) => {
                    requests += 1;
                    renewals += transmit.ops.len();
                    let answers = agree(&transmit);
                    let start = Instant::now();
                    client.handle_response(transmit.id, Ok(answers), now);
                    busy += start.elapsed();
                }
                Output::WakeAt(next) => {
                    ms = ms.max((next.ns() / 1_000_000).saturating_sub(1_000_000)) + 1;
                    break;
                }
                output => {
                    black_box(output);
                }
            }
        }
    }
    assert_eq!(client.stats().held, leases as usize);
    println!(
        "heartbeats for one ttl of 30 s: {renewals} renewals in {requests} requests, {:.2} us of core time each",
        busy.as_secs_f64() * 1e6 / renewals as f64
    );
    Case("one renewal among many", "time", "us").alone(busy.as_secs_f64() * 1e6 / renewals as f64);
}

/// Waiters for one lock in one client: one of them contends, the others cost memory only.
fn wait(waiters: u64) {
    let mut client = client();
    let resource = Resource::new("invoice/42").unwrap();
    let options = LockOptions::builder().wait(Wait::Forever).build().unwrap();
    client.acquire(LockId::new(0), resource.clone(), options.clone(), &[1; 16], at(0)).unwrap();
    settle(&mut client, at(0));
    let before = BYTES.load(Relaxed);
    for n in 1..=waiters {
        client.acquire(LockId::new(n), resource.clone(), options.clone(), &[1; 16], at(0)).unwrap();
    }
    assert_eq!(settle(&mut client, at(0)), 0, "nobody asks the store while the lock is held here");
    let bytes = BYTES.load(Relaxed) - before;
    println!("{waiters} waiters behind a lease: {:.0} bytes each, no request", bytes as f64 / waiters as f64);
    Case("one waiter among many", "memory", "bytes").alone(bytes as f64 / waiters as f64);
}

/// Acquire and release through a blocking client, on a store in memory.
fn pair(pairs: u64) {
    let client = leasehold::blocking::Client::connect("memory:").unwrap();
    let one = || client.lock("invoice/42").acquire().unwrap().release().unwrap();
    one();
    let counted = |_| {
        let before = ALLOCATIONS.load(Relaxed);
        one();
        ALLOCATIONS.load(Relaxed) - before
    };
    // Of several, since the client's own threads allocate now and then.
    let allocations = (0..100).map(counted).min().unwrap();
    let start = Instant::now();
    (0..pairs).for_each(|_| one());
    let us = start.elapsed().as_secs_f64() * 1e6 / pairs as f64;
    println!("whole client, acquire + release in memory: {us:.2} us, {allocations} allocations");
    Case("acquire and release in memory", "time", "us").alone(us);
    Case("acquire and release in memory", "allocations", "1").alone(allocations as f64);
}
