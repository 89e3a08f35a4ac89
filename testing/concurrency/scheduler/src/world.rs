//! One test under many schedules.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

use crate::clock;
use crate::sync::permit::Permit;
use crate::sync::thread;

/// Schedules of one seed. Half of the seeds choose each next thread by lot; the others give threads a rank that changes a
/// few times, which finds what takes a rare order of few steps.
const OF_A_SEED: usize = 50;
const CHANGES_OF_RANK: usize = 3;
/// The number of schedules of a test, and a seed to run alone.
const HOW_MANY: &str = "LEASEHOLD_SCHEDULES";
const WHICH: &str = "LEASEHOLD_SEED";
const USUALLY: usize = 400;
/// Steps after which a run counts as one that never ends.
const MOST_STEPS: usize = 200_000;
const STACK: usize = 256 * 1024;

/// The passing of time in a test.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// It does not pass, but by [`clock::advance`]: a thread that sleeps by the clock sleeps forever.
    Stands,
    /// From timer to timer, at any moment. A test that has not ended after so long has a thread that sleeps forever.
    Passes(Duration),
    /// The same, and sometimes all threads stand still for up to 20 s.
    Leaps(Duration),
}

thread_local! {
    static RUN: Cell<u64> = const { Cell::new(0) };
    static SEEN: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    static FAULTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static ALIVE: RefCell<Living> = const { RefCell::new(Living { threads: 0, waiting: None }) };
}

struct Living {
    threads: usize,
    /// The test, once it has done its part.
    waiting: Option<Arc<Permit>>,
}

/// The number of the run among all runs of this process.
pub(crate) fn run() -> u64 {
    RUN.get()
}

/// Something is wrong: the run fails at its end, also where a panic would be caught.
pub fn fault(what: impl Into<String>) {
    FAULTS.with_borrow_mut(|faults| faults.push(what.into()));
}

/// As long as this is there, the run is not over.
pub(crate) struct Alive;

impl Alive {
    pub(crate) fn new() -> Self {
        ALIVE.with_borrow_mut(|alive| alive.threads += 1);
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let waiting = ALIVE.with_borrow_mut(|alive| {
            alive.threads -= 1;
            (alive.threads == 0).then(|| alive.waiting.take()).flatten()
        });
        waiting.iter().for_each(|permit| permit.give());
    }
}

/// This has happened in the run; see [`explore`].
pub fn seen(what: &'static str) {
    SEEN.with_borrow_mut(|seen| seen.insert(what));
}

/// Runs a test under many schedules, some of which must have [`seen`] each of the things named.
///
/// # Panics
/// One of them breaks it, or a thread panics, or sleeps forever. The seed has been printed then.
pub fn explore(time: Time, sometimes: &[&'static str], test: impl Fn() + Send + Sync + 'static) {
    explore_test(time, sometimes, &(Arc::new(test) as Test));
}

/// Compiled once for all tests.
type Test = Arc<dyn Fn() + Send + Sync>;

fn explore_test(time: Time, sometimes: &[&'static str], test: &Test) {
    // Those of one process share what is static.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    remember_panics();
    for seed in seeds() {
        let test = Arc::clone(test);
        let body = move || one(time, &test);
        let tried = panic::catch_unwind(AssertUnwindSafe(|| match seed % 2 {
            0 => tries(RandomScheduler::new_from_seed(seed, OF_A_SEED), body),
            _ => tries(PctScheduler::new_from_seed(seed, CHANGES_OF_RANK, OF_A_SEED), body),
        }));
        if let Err(panic) = tried {
            tell(&format!("{WHICH}={seed} repeats it"));
            panic::resume_unwind(panic);
        }
    }
    let seen = SEEN.take();
    let never: Vec<_> = sometimes.iter().filter(|what| !seen.contains(*what)).collect();
    assert!(never.is_empty() || std::env::var_os(WHICH).is_some(), "no schedule has shown: {never:?}");
}

/// Runs a small test under all schedules there are, and answers how many that is.
///
/// # Panics
/// As [`explore`]; or there are more than `most`.
pub fn exhaust(most: usize, test: impl Fn() + Send + Sync + 'static) -> usize {
    exhaust_test(most, Arc::new(test))
}

fn exhaust_test(most: usize, test: Test) -> usize {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    remember_panics();
    let scheduler = shuttle::scheduler::DfsScheduler::new(Some(most), false);
    let tried = Runner::new(scheduler, config()).run(move || one(Time::Stands, &test));
    assert!(tried < most, "there are more than {most} schedules");
    tried
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("it is a number"));
    match number(WHICH) {
        Some(seed) => seed..seed + 1,
        None => 0..number(HOW_MANY).unwrap_or(USUALLY as u64).div_ceil(OF_A_SEED as u64),
    }
}

fn tries(scheduler: impl Scheduler + 'static, body: impl Fn() + Send + Sync + 'static) {
    Runner::new(scheduler, config()).run(body);
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.ungraceful_shutdown_config.immediately_return_on_panic = true;
    // A seed says the same in fewer words.
    config.failure_persistence = shuttle::FailurePersistence::None;
    config
}

fn one(time: Time, test: &Test) {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    RUN.set(RUNS.fetch_add(1, Ordering::Relaxed));
    FAULTS.with_borrow_mut(Vec::clear);
    ALIVE.set(Living { threads: 0, waiting: None });
    clock::reset();
    let keeper = match time {
        Time::Stands => None,
        Time::Passes(most) => Some(shuttle::thread::spawn(move || clock::run(false, most))),
        Time::Leaps(most) => Some(shuttle::thread::spawn(move || clock::run(true, most))),
    };
    test();
    settle();
    clock::stop();
    if let Some(keeper) = keeper {
        keeper.join().expect("its panic has been printed");
    }
    let faults = FAULTS.take();
    assert!(faults.is_empty(), "{}", faults.join("; "));
}

/// The calling thread stands still while the time of the run goes on by so much. No real time passes.
pub fn pass(time: Duration) {
    thread::sleep(time);
}

/// Waits until all other threads have ended, the client's among them: they must, once it is closed or dropped.
pub fn settle() {
    let permit = Permit::new();
    let left = ALIVE.with_borrow_mut(|alive| {
        alive.waiting = Some(Arc::clone(&permit));
        alive.threads
    });
    if left > 0 {
        permit.wait();
    }
}

/// Notes all panics. The client catches those of other people's code, which must not hide those of a test.
fn remember_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            FAULTS.with(|faults| {
                if let Ok(mut faults) = faults.try_borrow_mut() {
                    faults.push(panic.to_string());
                }
            });
            told(panic);
        }));
    });
}

#[expect(clippy::print_stderr, reason = "tests tell it there")]
fn tell(what: &str) {
    eprintln!("{what}");
}
