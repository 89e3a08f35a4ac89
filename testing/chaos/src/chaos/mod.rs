//! Chaos: workers in three languages on real stores, everything that can be done to them, and the books that tell
//! whether a promise was broken.
//!
//! Each worker writes down what it believes and when, by the machine's monotonic clock. Nothing is judged while the run
//! lasts: the checker reads the books of all workers, the list of blows, and the counters afterwards.

pub mod arena;
pub mod blows;
pub mod books;
pub mod cast;
pub mod check;
pub mod network;
pub mod pauses;
pub mod plot;
pub mod report;
pub mod run;
pub mod timeline;
pub mod vault;
pub mod worker;

/// Nanoseconds of the machine's monotonic clock, the one that every worker stamps its book with.
pub fn now_ns() -> u64 {
    u64::try_from(leasehold_bench::database::now_ns()).unwrap_or_default()
}
