//! Distributed locks that tell the truth.
//!
//! Two workers must not do the same job twice. leasehold gives one of them a **lease**: a grant that ends by itself unless
//! it is renewed, which happens in the background until it is released, dropped or lost. Every grant carries a **fencing
//! token** that only ever grows, so that the resource itself can refuse a worker that was stalled past its lease.
//!
//! ```
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), leasehold::Error> {
//! let client = leasehold::Client::connect("memory:").await?;           // or "sqlite:locks.db", or DefaultStore
//! let lease = client.lock("invoice/42")
//!     .ttl(Duration::from_secs(30))                                    // without renewal, it lasts this long
//!     .wait(Duration::from_secs(10))                                   // how long to try; default: forever
//!     .await?;
//! tokio::select! {
//!     reason = lease.lost() => return Err(reason),                     // stop: another worker may have it
//!     () = work(lease.token()) => {}
//! }
//! lease.release().await?;
//! # Ok(())
//! # }
//! # async fn work(_: u64) {}
//! ```
//!
//! Code without async finds the same names in [`blocking`].
//!
//! # What is promised
//!
//! - At most one holder believes itself valid at any instant, while clock *rates* are wrong by at most 1% (settable) and
//!   the store keeps its records. Offsets between clocks do not matter, and suspended time counts.
//! - Tokens are unique, and a grant asked for after another was answered has the larger one.
//! - From its deadline on a lease answers *lost* everywhere, from the clock alone, and never comes back.
//! - When a holder dies, a waiter gets the lock within the ttl, a margin of 2%, and one poll.
//!
//! # What is not
//!
//! **A check and the write after it are two steps, and any time can pass between them.** Only the resource, checking
//! tokens, closes that gap: see [`fence`]. Locks are not reentrant. Waiters of one client are served in order; across
//! clients only in memory, in SQLite, on PostgreSQL and on one Redis. A lease that is not bound to a name is released at once, and `_`
//! is no name: write `let _lease = ...`.
//!
//! # Errors
//!
//! [`Error::kind`] tells apart what callers have to handle differently: busy, timed out, lost, not owned, store unavailable,
//! store refused, and misuse. *Busy* is never *down*.
//!
//! # Stores
//!
//! | url | for | feature |
//! |---|---|---|
//! | `sqlite:locks.db` | all processes of one machine | `sqlite`, on by default |
//! | `redis://host`, `rediss://`, `redis+unix:`, `redis+cluster://`, `redis+sentinel://` | many machines, over Redis or Valkey | `redis`, on by default |
//! | `upstash+https://:TOKEN@host`, `webdis+http://host` | Redis over HTTP | `http` |
//! | `dynamodb://TABLE?region=eu-west-1` | many machines, over a table of DynamoDB, which Java's lock client can share | `dynamodb` |
//! | `etcd://HOST,HOST,HOST` | many machines, over etcd | `etcd` |
//! | `postgres://USER@HOST/DATABASE` | many machines, over a table of PostgreSQL, through PgBouncer too | `postgres` |
//! | `s3://BUCKET`, `azblob://ACCOUNT/CONTAINER`, `gs://BUCKET`, `cosmos://ACCOUNT/DATABASE/CONTAINER` | many machines, over objects in cloud storage | `objects` |
//! | `memory:` | one process | none |
//!
//! `cargo add leasehold --features postgres` adds a store, `--features full` all of them. A url whose store was left out is an error
//! that names the feature.
//!
//! [`StoreUrl`] tells the parameters of each. A DynamoDB table is made by `leasehold store create`, or by the module `table` of the feature `dynamodb`.
//!
//! # Quorums
//!
//! Several urls instead of one are a **quorum** of independent stores, of one kind or of different ones: a lock is held once a
//! majority has granted it, and a minority may be away, be restarted, or lose its data. All clients name the same nodes
//! and use the same [`max_ttl`](ClientBuilder::max_ttl), which bounds the ttl of every lock. A node that has lost its memory,
//! or may have, does not vote for a little longer than that; it comes back by itself. See [`quorum`] for making one and
//! looking at its nodes.
//!
//! New nodes are marked once, before the first client connects:
//!
//! ```sh
//! leasehold quorum init --store redis://a --store redis://b --store redis://c
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::Error> {
//! let client = leasehold::Client::connect(["redis://a", "redis://b", "redis://c"]).await?;
//! let lease = client.lock("invoice/42").await?;
//! # lease.release().await
//! # }
//! ```
//!
//! A node that comes back does so in the memory of one client that stays for so long. Where all of them are short-lived,
//! run `leasehold quorum join` after a loss, or call [`quorum::Quorum::join`].
//!
//! # Forks
//!
//! A lease belongs to the process that took it. In a forked child all inherited leases are lost, nothing is released, and
//! inherited clients refuse to work; connect again there.
//!
//! # Observability
//!
//! Spans `lock.acquire` and `lock.release`, and events `lock.acquired`, `lock.contended`, `lock.waiting`, `lock.failed`, `lock.renewed`,
//! `lock.renew_late`, `lock.shortened`, `lock.expiring`, `lock.lost`, `lock.released`, `lock.release_unconfirmed`,
//! `lock.recovered`, `lock.events_dropped` come through `tracing`, target `leasehold`; of a quorum also `lock.node_abstains`,
//! `quorum.node_unreachable` and `quorum.even`, and of one store `quorum.marker_unread`, when a client connects; `store.default`
//! where no store is named, and `store.relative` where one is named by a relative path. With the feature `metrics`, counters
//! `leasehold_acquire_total`, `leasehold_renew_total`, `leasehold_lost_total`, `leasehold_release_total`,
//! `leasehold_events_dropped_total` and histograms
//! `leasehold_wait_seconds`, `leasehold_hold_seconds`, `leasehold_renew_duration_seconds`,
//! `leasehold_validity_left_seconds` come through the `metrics` crate. Resource names are in log events only, never in
//! labels; nonces are in neither.
//!
//! A log or recorder that hangs holds up no lease: events leave through a bounded queue and a thread of their own, but for
//! those that a caller can tell itself, of its own lock. What finds no room is dropped and counted.

#![cfg_attr(not(feature = "__ffi"), allow(unreachable_pub, reason = "bindings reach it"))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test is about one of them"))]

mod admin;
#[cfg(feature = "dynamodb")]
mod aws;
pub mod blocking;
mod callbacks;
pub mod cas;
mod client;
mod connect;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod direct;
mod driver;
mod error;
mod event_loop;
mod exec;
#[cfg(any(feature = "__ffi", leasehold_concurrency))]
#[doc(hidden)]
pub mod ffi;
#[cfg(not(any(feature = "__ffi", leasehold_concurrency)))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "for bindings alone")]
mod ffi;
mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod host;
#[cfg(leasehold_concurrency)]
#[doc(hidden)]
pub mod internals;
mod lengths;
mod locks;
mod metrics;
pub mod quorum;
mod reports;
mod runs;
mod sizes;
mod stores;
#[cfg(feature = "testing")]
pub mod testing;
mod transport;
#[cfg_attr(
    not(all(
        feature = "sqlite",
        feature = "redis",
        feature = "http",
        feature = "etcd",
        feature = "objects",
        feature = "postgres"
    )),
    allow(dead_code, reason = "each kind of store needs a part of it")
)]
mod url;

/// Guards for the protected resource, as a crate of its own: `leasehold-fence`.
#[doc(inline)]
pub use leasehold_fence as fence;

pub use admin::doctor::{Finding, Severity};
pub use admin::inspect::Waiters;
pub use admin::list::{Listing, Runs};
pub use admin::release_if::{HolderMatch, ReleaseIfOutcome};
pub use admin::revoke::RevokeOutcome;
#[cfg(feature = "postgres")]
pub use admin::schema;
#[cfg(feature = "dynamodb")]
pub use admin::table;
pub use admin::watch::{Change, Watch};
pub use client::Client;
pub use connect::ClientBuilder;
pub use error::{Error, ErrorKind, LockInfo};
pub use groups::elect::{Election, ElectionRequest};
pub use groups::sessions::SessionInfo;
pub use groups::shards::{Shard, Shards, ShardsRequest};
pub use leasehold_core::Attempts;
pub use locks::all::{Leases, LockAllRequest};
pub use locks::any::LockAnyRequest;
pub use locks::lease::Lease;
pub use locks::permits::{MAX_PERMITS, Permit, SemaphoreRequest};
pub use locks::request::LockRequest;
pub use locks::rw_lock::RwLockRequest;
pub use runs::completion::Completion;
#[cfg(feature = "postgres")]
pub use runs::completion_in::CompletionStatement;
pub use runs::once::{Once, Run, RunInfo, RunRequest};
pub use runs::result::RunResult;
pub use stores::{DefaultStore, Stores};
pub use url::StoreUrl;

/// The examples of the guide to runs are tested with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../docs/once.md")]
struct GuideToRuns;

/// As above.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../docs/testing.md")]
struct GuideToTesting;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../docs/compare-and-set.md")]
struct GuideToCompareAndSet;
