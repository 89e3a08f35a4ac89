//! Chaos: workers in three languages use real stores while faults are injected. Their journals show whether a promise
//! was broken.
//!
//! Each worker writes down what it believes and when, by the machine's monotonic clock. Nothing is checked during the
//! run: afterwards the checker reads the journals of all workers, the list of faults, and the counters.

pub mod by_lock;
pub mod check;
pub mod crew;
pub mod environment;
pub mod faults;
pub mod guarded_counter;
pub mod journal;
pub mod network;
pub mod pauses;
pub mod plot;
pub mod report;
pub mod run;
pub mod store;
pub mod timeline;
pub mod worker;
pub mod workers;

/// The machine's monotonic clock in nanoseconds. Every worker stamps its journal with it.
pub fn now_ns() -> u64 {
    u64::try_from(leasehold_bench::database::now_ns()).unwrap_or_default()
}
