//! The time of a run: it stands still until it is moved.
//!
//! A thread of the world's moves it from one timer to the next, at moments that the scheduler chooses: threads may be as
//! slow as they like.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use leasehold_core::Monotonic;
use shuttle::rand::{Rng, thread_rng};

use crate::sync::permit::{Permit, switch};

/// Any time after zero, which means "lost" to a slot.
const BEGINNING: u64 = 1_000_000_000;
const UNIX_MS: u64 = 1_700_000_000_000;

/// The clock of one run, and the sleeps that it ends.
struct Clock {
    now: AtomicU64,
    timers: std::sync::Mutex<Timers>,
}

#[derive(Default)]
struct Timers {
    next: u64,
    set: BTreeMap<(u64, u64), Arc<Permit>>,
    /// The thread that moves the clock, while it has nothing to wait for.
    idle: Option<Arc<Permit>>,
    /// The clock is not moved any more.
    is_over: bool,
    /// The number of [`Standstill`]s.
    standstills: u32,
    /// The clock does not get there by itself.
    end: Option<u64>,
}

thread_local! {
    /// All threads of a run are one to the operating system.
    static CLOCK: RefCell<Arc<Clock>> = RefCell::new(Arc::new(Clock::new()));
}

/// A sleep that ends by the clock, unless it is dropped before.
pub(crate) struct Timer {
    clock: Arc<Clock>,
    key: (u64, u64),
}

impl Clock {
    fn new() -> Self {
        Self { now: AtomicU64::new(BEGINNING), timers: std::sync::Mutex::default() }
    }

    fn timers(&self) -> std::sync::MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new run begins.
pub(crate) fn reset() {
    CLOCK.replace(Arc::new(Clock::new()));
}

fn clock() -> Arc<Clock> {
    CLOCK.with_borrow(Arc::clone)
}

/// The time since some moment before the run.
pub fn monotonic() -> Monotonic {
    switch();
    Monotonic::from_ns(clock().now.load(Ordering::SeqCst))
}

/// The wall clock, in milliseconds since 1970.
pub fn unix_ms() -> u64 {
    UNIX_MS + clock().now.load(Ordering::SeqCst) / 1_000_000
}

/// The time since the beginning of the run.
pub fn passed() -> Duration {
    monotonic().since(Monotonic::from_ns(BEGINNING))
}

/// Lets time pass, and wakes the threads whose sleep is over.
pub fn advance(time: Duration) {
    let clock = clock();
    switch();
    if clock.timers().standstills > 0 {
        return;
    }
    let to = Monotonic::from_ns(clock.now.load(Ordering::SeqCst)).plus(time).ns();
    clock.now.store(to, Ordering::SeqCst);
    loop {
        let due = clock.timers().set.first_key_value().filter(|((at, _), _)| *at <= to).map(|(key, _)| *key);
        let Some(key) = due else { return };
        let woken = clock.timers().set.remove(&key);
        woken.iter().for_each(|permit| permit.give());
    }
}

/// Gives a permit when the time has passed.
pub(crate) fn timer(after: Duration, permit: &Arc<Permit>) -> Timer {
    let clock = clock();
    let at = monotonic().plus(after).ns();
    let mut timers = clock.timers();
    timers.next += 1;
    let key = (at, timers.next);
    timers.set.insert(key, Arc::clone(permit));
    let idle = timers.idle.take();
    drop(timers);
    idle.iter().for_each(|idle| idle.give());
    Timer { clock, key }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.clock.timers().set.remove(&self.key);
    }
}

/// From now on a thread that waits for that moment, or a later one, waits forever.
pub fn stop_before(end: Monotonic) {
    clock().timers().end = Some(end.ns());
}

/// While it is there, no time passes.
pub struct Standstill(Arc<Clock>);

impl Standstill {
    /// It begins.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        let clock = clock();
        clock.timers().standstills += 1;
        Self(clock)
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        self.0.timers().standstills -= 1;
    }
}

/// Moves the clock for as long as the run lasts; `leaps` lets it jump further than the next timer now and then, as if all
/// threads had stood still.
pub(crate) fn run(leaps: bool, horizon: Duration) {
    let (permit, clock) = (Permit::new(), clock());
    loop {
        // Others come first, where the scheduler has a preference.
        shuttle::thread::yield_now();
        let mut timers = clock.timers();
        if timers.is_over {
            return;
        }
        let next = timers.set.first_key_value().map(|((at, _), _)| *at);
        let Some(at) = next.filter(|at| timers.end.is_none_or(|end| *at < end)) else {
            timers.idle = Some(Arc::clone(&permit));
            drop(timers);
            permit.wait();
            continue;
        };
        drop(timers);
        let leap = if leaps && thread_rng().gen_ratio(1, 16) { thread_rng().gen_range(0..20_000) } else { 0 };
        advance(Monotonic::from_ns(at).since(monotonic()) + Duration::from_millis(leap));
        if passed() > horizon {
            panic!("the test's time is over, and a thread still waits");
        }
    }
}

/// Ends [`run`].
pub(crate) fn stop() {
    let clock = clock();
    let mut timers = clock.timers();
    timers.is_over = true;
    let idle = timers.idle.take();
    drop(timers);
    idle.iter().for_each(|idle| idle.give());
}
