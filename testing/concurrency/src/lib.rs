//! The run loop of the client, and whatever meets it on the way, under a scheduler that tries interleavings: [shuttle].
//!
//! What is compiled here are the client's own files. Only the ground under them is another one: locks, atomics and threads
//! ([`sync`]) are shuttle's, the clock moves when the [`world`] says so, random bytes come with the schedule, and a fork is
//! a thread that has another generation ([`fork`]). No feature of the client is on: stores are in memory, behind
//! [`Store`], which is asked on the calling thread, on a thread of the client's, or as if it were behind a socket.
//!
//! Each file of `tests/handoffs` is about one hand-off between threads. [`world::explore`] runs a test under many schedules,
//! and tells the seed of those that fail.
//!
//! [shuttle]: https://docs.rs/shuttle

// Examples of the client speak of the client.
#![cfg(not(doctest))]

pub mod clock;
mod entropy;
pub mod fence;
pub mod fork;
pub mod pieces;
mod reports;
mod store;
pub mod sync;
pub mod world;

/// The client's files.
macro_rules! of_the_client {
    ($($path:literal $face:vis mod $name:ident;)*) => { $(
        #[path = $path]
        #[allow(dead_code, unused_imports, unreachable_pub, clippy::all, reason = "only a part of the client is at work here")]
        $face mod $name;
    )* };
}

of_the_client! {
    "../../../client/src/all.rs" mod all;
    "../../../client/src/blocking.rs" pub mod blocking;
    "../../../client/src/client.rs" mod client;
    "../../../client/src/connect.rs" mod connect;
    "../../../client/src/doctor.rs" mod doctor;
    "../../../client/src/driver/mod.rs" mod driver;
    "../../../client/src/elect.rs" mod elect;
    "../../../client/src/error.rs" mod error;
    "../../../client/src/exec.rs" mod exec;
    "../../../client/src/host/mod.rs" pub mod host;
    "../../../client/src/host_clock.rs" mod host_clock;
    "../../../client/src/inspect.rs" mod inspect;
    "../../../client/src/lease.rs" mod lease;
    "../../../client/src/metrics.rs" mod metrics;
    "../../../client/src/quorum/mod.rs" pub mod quorum;
    "../../../client/src/release_if.rs" mod release_if;
    "../../../client/src/request.rs" mod request;
    "../../../client/src/stores.rs" mod stores;
    "../../../client/src/transport/mod.rs" mod transport;
    "../../../client/src/url/mod.rs" mod url;
}

pub use all::{Leases, LockAllRequest};
pub use client::Client;
pub use connect::ClientBuilder;
pub use doctor::{Finding, Severity};
pub use elect::{Election, ElectionRequest};
pub use error::{Error, ErrorKind, LockInfo};
pub use lease::Lease;
pub use request::LockRequest;
pub use store::{Reach, Store};
pub use stores::Stores;
pub use url::StoreUrl;

/// Runs a future on the calling thread, as blocking callers do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    exec::block_on(future)
}

/// The same until `enough` says so after one of its turns, which drops the future. Turns follow each other every few
/// milliseconds if nobody wakes the thread.
pub fn block_on_until<F: Future>(future: F, mut enough: impl FnMut() -> bool) -> Option<F::Output> {
    let pause = std::time::Duration::from_millis(5);
    exec::block_on_until(future, || if enough() { exec::Pause::GiveUp } else { exec::Pause::AtMost(pause) })
}
