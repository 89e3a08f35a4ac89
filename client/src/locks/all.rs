//! Requests for several locks, all or nothing.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use crate::client::Client;
use crate::error::Error;
use crate::forward::{settings, settings_of_locks};
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until};

/// A request for several locks at once; awaiting it acquires them. It fails as a [`LockRequest`] does, for the first lock
/// that could not be acquired, and with [`ErrorKind::Lost`](crate::ErrorKind::Lost) when one was lost while another was waited
/// for; none is held then.
#[must_use = "nothing is acquired until the request is awaited"]
pub struct LockAllRequest {
    resources: BTreeSet<String>,
    /// The name of the resource is set when the request is made.
    request: LockRequest,
}

impl Client {
    /// Asks for several locks at once, all or nothing. They are taken in sorted order, so that two callers who want the
    /// same ones cannot block each other forever.
    pub fn lock_all(&self, resources: impl IntoIterator<Item = impl Into<String>>) -> LockAllRequest {
        LockAllRequest::new(self, resources.into_iter().map(Into::into).collect())
    }
}

impl LockAllRequest {
    pub(crate) fn new(client: &Client, resources: BTreeSet<String>) -> Self {
        Self { resources, request: client.lock("") }
    }
}

settings_of_locks! { LockAllRequest:
    owner(owner: impl AsRef<str>);
    max_hold(max_hold: Duration);
}

settings! { LockAllRequest:
    /// See [`LockRequest::ttl`]. It must cover taking all the locks, though those taken first are renewed meanwhile.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|request| request.ttl(ttl))
    }

    /// How long to try for all of them together. Default: without limit. Zero tries each once.
    pub fn wait(self, wait: Duration) -> Self {
        self.map(|request| request.wait(wait))
    }
}

impl LockAllRequest {
    pub(crate) fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        Self { request: change(self.request), ..self }
    }

    pub(crate) async fn acquire(self) -> Result<Leases, Error> {
        let until = Until::of(&self.request)?;
        let mut leases = Leases(Vec::with_capacity(self.resources.len()));
        for resource in &self.resources {
            let request = until.wait(self.request.clone().named(resource));
            match request.acquire().await {
                Ok(lease) => leases.0.push(lease),
                Err(error) => {
                    // The caller is told of the lock that could not be acquired, and not of these releases.
                    let _ = leases.release().await;
                    return Err(error);
                }
            }
        }
        if let Err(error) = leases.check(Duration::ZERO) {
            let _ = leases.release().await;
            return Err(error);
        }
        Ok(leases)
    }
}

impl IntoFuture for LockAllRequest {
    type Output = Result<Leases, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// Several leases that were taken together, in the order of their names.
#[must_use = "dropping the leases releases the locks at once"]
#[derive(Debug)]
pub struct Leases(pub(crate) Vec<Lease>);

impl Leases {
    /// Fails unless each has at least `min` of validity left.
    ///
    /// # Errors
    /// As [`Lease::check`], of the first that fails.
    pub fn check(&self, min: Duration) -> Result<(), Error> {
        self.0.iter().try_for_each(|lease| lease.check(min))
    }

    /// Releases all of them, the last one taken first.
    ///
    /// # Errors
    /// As [`Lease::release`], the first one met; the others are released all the same.
    pub async fn release(&self) -> Result<(), Error> {
        // All releases are begun before the first one is awaited, so that they share one wait.
        let begun: Vec<_> = self.0.iter().rev().map(|lease| (lease, lease.begin_release())).collect();
        let mut first = Ok(());
        for (lease, begun) in begun {
            let result = match begun {
                Ok(()) => lease.released().await,
                Err(error) => Err(error),
            };
            first = first.and(result);
        }
        first
    }
}

impl Deref for Leases {
    type Target = [Lease];

    fn deref(&self) -> &[Lease] {
        &self.0
    }
}
