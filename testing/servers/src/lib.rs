//! Real servers for tests, and a network that breaks on request.
//!
//! - [`redis::Server`]: a real `redis-server`, with replicas, ACLs, TLS, and a wall clock that can be moved;
//! - [`redis::Cluster`] and [`redis::Watched`]: several of those as a cluster, or with Sentinels;
//! - [`webdis::Server`]: a real `webdis` in front of one;
//! - [`rest::Server`]: a server in this process that speaks the REST protocol of Upstash over a real Redis, and answers
//!   badly on request;
//! - [`dynamodb::Server`]: a real DynamoDB Local, which a test program shares, since it takes a second to start;
//! - [`etcd::Server`]: a real etcd, with one member or several;
//! - [`postgres::Server`]: a real PostgreSQL, with a standby on request, and [`postgres::Pooler`], a PgBouncer in front;
//! - [`objects::Server`]: Azurite, moto or fake-gcs-server, with the APIs of cloud storage;
//! - [`answers::Server`]: an HTTP server in this process whose answers a test makes up;
//! - [`proxy::Proxy`]: a TCP proxy that loses one reply, or cuts, delays, splits and swallows what passes;
//! - [`resp::Connection`] and [`http::Connection`]: simple clients, to see the effects of a client under test.
//!
//! ```
//! use leasehold_servers::proxy::{Proxy, Request};
//! use leasehold_servers::redis;
//! use leasehold_servers::resp::Connection;
//!
//! # fn main() -> std::io::Result<()> {
//! let server = redis::Server::start();
//! let proxy = Proxy::to(server.address());
//! let lost = proxy.reset_after_forwarding(Request::containing("INCR"));
//!
//! // The client gets no answer, and the counter has moved all the same.
//! let mut client = Connection::open(proxy.address())?;
//! assert!(client.command(&["INCR", "counter"]).is_err());
//! assert_eq!(lost.hits(), 1);
//! assert_eq!(server.command(&["GET", "counter"]).text(), "1");
//! # Ok(())
//! # }
//! ```
//!
//! Everything listens on 127.0.0.1 and belongs to the value that started it: dropping that value stops it, also while a
//! test panics, and on Linux the kernel kills it when the whole test process is killed (its temporary folder then
//! stays). Nothing here returns an error that a test would only unwrap: what cannot go on panics, and says what the
//! server wrote last.
//!
//! Programs that are missing are named with the Debian package that has them: `redis-server`, `webdis`, `postgresql`,
//! `pgbouncer`, `etcd-server`, `gcc`, `java`. DynamoDB Local and the servers of cloud storage come with `cargo xtask
//! interop`.

pub mod answers;
mod clock;
#[cfg(unix)]
pub mod dynamodb;
#[cfg(unix)]
pub mod etcd;
#[cfg(unix)]
mod full;
pub mod http;
#[cfg(unix)]
pub mod objects;
mod ports;
#[cfg(unix)]
pub mod postgres;
mod preload;
mod process;
pub mod proxy;
pub mod redis;
pub mod resp;
pub mod rest;
mod slow;
mod trace_capture;
pub mod webdis;

pub use redis::tls::{Tls, pem};
pub use slow::{is_an_echo, is_for_want_of_time};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Tells if `cargo xtask prove long` runs the test, which then does all that it can instead of what shows a mistake soonest.
pub fn is_long() -> bool {
    std::env::var_os("LEASEHOLD_LONG").is_some()
}

/// Long enough for a machine that is busy with other things; only a failure takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The interval at which a condition is checked while waiting for it.
pub(crate) const GLANCE: Duration = Duration::from_millis(5);

/// Waits until `condition` holds, looking every 5 ms.
///
/// # Panics
///
/// After a minute, saying `what` was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        sleep(GLANCE);
    }
}
