//! Semaphores: at most N holders at a time, each of which has a lock of its own.

use std::future::IntoFuture;
use std::ops::Deref;
use std::pin::Pin;
use std::slice;
use std::time::Duration;

use crate::client::Client;
use crate::error::Error;
use crate::forward::{settings, settings_of_locks};
use crate::locks::any;
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until, none_if_busy};
use crate::sizes::{self, Size};

/// The most permits of a semaphore, the most readers of a [`RwLockRequest`](crate::RwLockRequest), and the most shards of a
/// [`ShardsRequest`](crate::ShardsRequest).
pub const MAX_PERMITS: usize = 64;

/// A request for one of N permits; awaiting it acquires one.
///
/// Each permit is a lock, named `NAME#0` to `NAME#N-1`, so there are never more than N holders, on every store and on quorums.
/// The permit of a dead holder comes back after its ttl. All clients name the same N: the first one writes it down beside the
/// permits, and another N is an error.
#[must_use = "nothing is acquired until the request is awaited"]
#[derive(Clone)]
pub struct SemaphoreRequest {
    size: Size,
    /// The name of the resource is set when the request is made.
    request: LockRequest,
}

impl Client {
    /// Asks for one of `permits` permits, 1 to 64. See [`SemaphoreRequest`].
    ///
    /// ```
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// let client = leasehold::Client::connect("memory:").await?;
    /// let permit = client.semaphore("license", 5).await?;
    /// println!("permit {} of 5, fencing token {}", permit.index(), permit.token());
    /// permit.release().await
    /// # }
    /// ```
    pub fn semaphore(&self, name: impl Into<String>, permits: usize) -> SemaphoreRequest {
        SemaphoreRequest::new(self.lock(""), name.into(), permits)
    }

    /// Changes the number of permits of a semaphore, while nobody holds one.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) while somebody holds a permit, and as acquiring one.
    pub async fn set_permits(&self, name: impl Into<String>, permits: usize) -> Result<(), Error> {
        sizes::set(self, &Size::of_permits(name.into(), permits)).await
    }
}

settings_of_locks! { SemaphoreRequest:
    ttl(ttl: Duration);
    owner(owner: impl AsRef<str>);
    data(data: impl AsRef<[u8]>);
    max_hold(max_hold: Duration);
}

settings! { SemaphoreRequest:
    /// How long to try for a permit. Default: without limit. Zero tries each once.
    pub fn wait(self, wait: Duration) -> Self {
        self.map(|request| request.wait(wait))
    }

    /// See [`LockRequest::watch_holder`]: the holders of all permits are watched at the same time.
    pub fn watch_holder(self) -> Self {
        self.map(LockRequest::watch_holder)
    }
}

impl SemaphoreRequest {
    pub(crate) fn new(request: LockRequest, name: String, permits: usize) -> Self {
        Self { size: Size::of_permits(name, permits), request }
    }

    /// Tries each permit once, whatever [`SemaphoreRequest::wait`] says: `None` when all of them are held.
    ///
    /// # Errors
    /// As for awaiting the request, without [`ErrorKind::Busy`](crate::ErrorKind::Busy) and
    /// [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut).
    pub async fn try_acquire(self) -> Result<Option<Permit>, Error> {
        none_if_busy(self.wait(Duration::ZERO).acquire().await)
    }

    pub(crate) async fn acquire(self) -> Result<Permit, Error> {
        let (resources, until) = (self.size.resources()?, Until::of(&self.request)?);
        let (index, lease) = any::acquire(&resources, &self.request, until).await?;
        // Only a holder can tell that the number is not being changed. An error drops the permit, which releases it.
        sizes::agree(self.request.client(), &self.size, slice::from_ref(&lease)).await?;
        Ok(Permit { lease, index })
    }

    pub(crate) fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        Self { request: change(self.request), ..self }
    }
}

impl IntoFuture for SemaphoreRequest {
    type Output = Result<Permit, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// A held permit of a semaphore. All that a [`Lease`] can do, it can do as well. Its fencing token grows with every grant of the
/// same permit; those of different permits say nothing about each other.
#[derive(Debug)]
#[must_use = "dropping a permit releases it at once"]
pub struct Permit {
    lease: Lease,
    index: usize,
}

impl Permit {
    /// The number of the permit, from 0: which of N equal things its holder may use.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl From<Permit> for Lease {
    fn from(permit: Permit) -> Self {
        permit.lease
    }
}

impl Deref for Permit {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}
