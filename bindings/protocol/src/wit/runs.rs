//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Names for runs, work that is done once, and the attempts at them.
//!
//! A run is a lease whose success is written down as a completion. Acquire `run-resource` with `lock-options.run`, do the work,
//! and call `client.finish`; after a failure call `client.release`, so that another machine may try.
//!
//! Where attempts are counted, the count is the result of a completion of its own. Once the run is held, acquire `attempts-resource`
//! as a run with `even-if-done` and the same `keep-ms`, read it by `client.read`, and call `count-attempt`. If another one may begin,
//! finish the count with `keep-attempts`. Then begin the work, if the store has confirmed that, and the run is still held.

mod calls;
mod values;

pub use calls::call;
pub(crate) use calls::Guest;

/// How often the work of a run may be begun.
pub struct AttemptLimit {
    /// The number of attempts, 1 or more.
    pub max: u32,
    /// The pause from the start of an attempt to the start of the next one.
    pub retry_after_ms: u64,
}

/// How often the work of a run was begun.
pub struct Attempts {
    /// The number of attempts that were begun.
    pub count: u32,
    /// How many were allowed when the last one began.
    pub max: u32,
    /// When the first of them began, in milliseconds since 1970 by the clock of the one that began it.
    pub since_unix_ms: u64,
    /// When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last.
    pub retry_unix_ms: u64,
    /// Why the last one failed; absent where it did not say so, or is still under way.
    pub reason: Option<String>,
}

/// The decision about the next attempt.
pub enum NextAttempt {
    /// It may begin, once these are written.
    Begin(Attempts),
    /// Not before these say so.
    Later(Attempts),
    /// As often as allowed it was begun, and never finished.
    GivenUp(Attempts),
    /// Too few nodes show the holder of the count: read it again.
    Unsure,
}
