//! Locks for readers and writers, made of locks: a gate, and one lock for each reader.

use std::future::poll_fn;
use std::pin::pin;
use std::slice;
use std::task::Poll;
use std::time::Duration;

use crate::client::Client;
use crate::error::Error;
use crate::forward::{settings, settings_of_locks};
use crate::locks::all::Leases;
use crate::locks::any;
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until};
use crate::sizes::{self, Size};

/// As many readers at a time as most services have processes.
const DEFAULT_READERS: usize = 16;

/// A request to read together with others, or to write alone.
///
/// A reader passes the lock `NAME#gate` and keeps one of `NAME#reader0` to `NAME#readerN-1`. A writer keeps the gate, so that no
/// reader enters any more, and then takes all N others. Writers are therefore not starved by readers. All clients name the same
/// N: the first one writes it down, and another N is an error.
#[must_use = "nothing is acquired until `read` or `write` is called"]
#[derive(Clone)]
pub struct RwLockRequest {
    size: Size,
    /// The name of the resource is set when the request is made.
    request: LockRequest,
}

impl Client {
    /// Asks for a lock that many readers hold together, or one writer alone. See [`RwLockRequest`].
    pub fn rw_lock(&self, name: impl Into<String>) -> RwLockRequest {
        RwLockRequest::new(self.lock(""), name.into())
    }

    /// Changes the number of readers of a lock, while nobody holds it.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) while somebody reads or writes, and as acquiring it.
    pub async fn set_readers(&self, name: impl Into<String>, readers: usize) -> Result<(), Error> {
        sizes::set(self, &Size::of_readers(name.into(), readers)).await
    }
}

settings_of_locks! { RwLockRequest:
    ttl(ttl: Duration);
    owner(owner: impl AsRef<str>);
    max_hold(max_hold: Duration);
}

settings! { RwLockRequest:
    /// The most readers at a time: 1 to 64, default 16. A write takes one lock more than this.
    pub fn readers(self, readers: usize) -> Self {
        Self { size: self.size.with_count(readers), ..self }
    }

    /// How long to try. Default: without limit. Zero tries each lock once.
    pub fn wait(self, wait: Duration) -> Self {
        self.map(|request| request.wait(wait))
    }
}

impl RwLockRequest {
    pub(crate) fn new(request: LockRequest, name: String) -> Self {
        Self { size: Size::of_readers(name, DEFAULT_READERS), request }
    }

    /// Acquires it together with other readers. The fencing token of the lease is above those of all writers before, and below
    /// those of all writers after.
    ///
    /// # Errors
    /// As a [`LockRequest`]; [`ErrorKind::Config`](crate::ErrorKind::Config) for a number of readers that cannot be, or that differs from that of other
    /// clients.
    pub async fn read(self) -> Result<Lease, Error> {
        let (resources, until) = (self.size.resources()?, Until::of(&self.request)?);
        loop {
            let gate = until.wait(self.request.clone().named(&self.size.gate())).acquire().await?;
            let slot = any::acquire(&resources, &self.request, until);
            let Some(taken) = unless_lost(&gate, slot).await else { continue };
            let (_, slot) = taken?;
            sizes::agree(self.request.client(), &self.size, slice::from_ref(&slot)).await?;
            // A gate that was lost before the slot was taken may have let a writer in.
            if gate.check(Duration::ZERO).is_err() {
                continue;
            }
            let token = gate.token();
            // The slot keeps writers out, so nothing depends on this answer.
            let _ = gate.release_by(self.request.caller()).await;
            return Ok(slot.with_token(token));
        }
    }

    /// Acquires it alone: waits until all readers are gone, and lets no new ones in meanwhile. The lease is that of the gate, and
    /// valid only while all other locks are held as well. Its fencing token is above those of all readers and writers before.
    ///
    /// # Errors
    /// As [`RwLockRequest::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) where this thread or task reads and would wait for itself forever:
    /// release the read lock first.
    pub async fn write(self) -> Result<Lease, Error> {
        let (resources, until) = (self.size.resources()?, Until::of(&self.request)?);
        if let Until::Forever = until {
            self.refuse_upgrade(&resources)?;
        }
        loop {
            let gate = until.wait(self.request.clone().named(&self.size.gate())).acquire().await?;
            let mut leases = Leases(vec![gate]);
            let taken = self.take_all(&resources, &mut leases, until).await;
            let is_lost = leases.check(Duration::ZERO).is_err();
            match taken {
                Ok(()) if !is_lost => {
                    let gate = leases.0.remove(0);
                    return Ok(gate.with_others(leases.0));
                }
                Err(error) if !is_lost => {
                    // The caller is told of the lock that could not be acquired, and not of these releases.
                    let _ = leases.release().await;
                    return Err(error);
                }
                // Without the gate readers may have come in since.
                Ok(()) | Err(_) => {
                    let _ = leases.release().await;
                }
            }
        }
    }

    async fn take_all(&self, resources: &[String], leases: &mut Leases, until: Until) -> Result<(), Error> {
        for resource in resources {
            let slot = until.wait(self.request.clone().named(resource)).acquire();
            let Some(slot) = unless_lost(&leases[0], slot).await else { return leases.check(Duration::ZERO) };
            leases.0.push(slot?);
        }
        sizes::agree(self.request.client(), &self.size, leases).await
    }

    fn refuse_upgrade(&self, resources: &[String]) -> Result<(), Error> {
        for resource in resources {
            if self.request.is_held_by_caller(resource)? {
                let message = "a reader cannot become a writer, since it would wait for itself forever: release the \
                               read lock first";
                return Err(Error::config(message).on(self.size.name()));
            }
        }
        Ok(())
    }

    pub(crate) fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        Self { request: change(self.request), ..self }
    }
}

/// The result of the work, unless the lease is lost before it is there.
async fn unless_lost<T>(lease: &Lease, work: impl Future<Output = T>) -> Option<T> {
    let (mut lost, mut work) = (pin!(lease.lost()), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => lost.as_mut().poll(context).map(|_| None),
    })
    .await
}
