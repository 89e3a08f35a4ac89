//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Names for runs: work that is done once.
//!
//! A run is a lease whose success is written down as a completion. Acquire `run-resource` with `lock-options.run`, do the work,
//! and call `client.finish`; after a failure call `client.release`, so that another machine may try.

mod calls;

pub use calls::call;
pub(crate) use calls::Guest;
