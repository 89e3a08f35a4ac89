//! Everything that the client takes from its machine, under a scheduler that tries interleavings: [shuttle].
//!
//! Locks, atomics and threads ([`sync`]) are shuttle's, the [`clock`] moves when the [`world`] says so, random bytes come with
//! the schedule ([`fill`]), and a forked process is a thread of another generation ([`fork`]). The client's own `sync.rs`,
//! `clock.rs`, `entropy.rs` and `fork.rs` use this crate in place of the operating system in the package
//! `leasehold-concurrency`, and nowhere else.
//!
//! [`world::explore`] runs a test under many schedules, and prints the seed of those that fail.
//!
//! [shuttle]: https://docs.rs/shuttle

pub mod clock;
mod entropy;
pub mod fork;
pub mod sync;
pub mod world;

pub use entropy::{fill, one_in};
