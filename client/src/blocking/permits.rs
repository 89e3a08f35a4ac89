//! One lock of several, semaphores, and locks for readers and writers.

use std::ops::Deref;
use std::time::Duration;

use super::{Client, Lease};
use crate::driver::Caller;
use crate::error::Error;
use crate::exec::block_on;
use crate::forward::settings;
use crate::locks::request::none_if_busy;
use crate::locks::{any, permits, rw_lock};
use crate::sizes::{self, Size};

impl Client {
    /// See [`leasehold::Client::lock_any`](crate::Client::lock_any).
    pub fn lock_any<R: Into<String>>(&self, resources: impl IntoIterator<Item = R>) -> LockAnyRequest {
        LockAnyRequest(self.0.lock_any(resources))
    }

    /// See [`leasehold::Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, name: impl Into<String>, permits: usize) -> SemaphoreRequest {
        SemaphoreRequest(self.0.semaphore(name, permits))
    }

    /// See [`leasehold::Client::set_permits`](crate::Client::set_permits).
    ///
    /// # Errors
    /// As there.
    pub fn set_permits(&self, name: impl Into<String>, permits: usize) -> Result<(), Error> {
        block_on(sizes::set(&self.0, &Size::of_permits(name.into(), permits), Caller::Blocking))
    }

    /// See [`leasehold::Client::rw_lock`](crate::Client::rw_lock).
    pub fn rw_lock(&self, name: impl Into<String>) -> RwLockRequest {
        RwLockRequest(self.0.rw_lock(name))
    }

    /// See [`leasehold::Client::set_readers`](crate::Client::set_readers).
    ///
    /// # Errors
    /// As there.
    pub fn set_readers(&self, name: impl Into<String>, readers: usize) -> Result<(), Error> {
        block_on(sizes::set(&self.0, &Size::of_readers(name.into(), readers), Caller::Blocking))
    }
}

/// One lock of several that is asked for: see [`leasehold::LockAnyRequest`](crate::LockAnyRequest).
#[must_use = "nothing is acquired until `acquire` or `try_acquire` is called"]
#[derive(Clone)]
pub struct LockAnyRequest(any::LockAnyRequest);

settings! { LockAnyRequest(any::LockAnyRequest):
    LockRequest::ttl(ttl: Duration);
    LockAnyRequest::wait(wait: Duration);
    LockRequest::owner(owner: impl AsRef<str>);
    LockRequest::data(data: impl AsRef<[u8]>);
    LockRequest::max_hold(max_hold: Duration);
}

impl LockAnyRequest {
    /// Acquires the first that is free, waiting as long as [`LockAnyRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::LockAnyRequest`](crate::LockAnyRequest).
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire(Caller::Blocking)).map(Lease)
    }

    /// See [`leasehold::LockAnyRequest::try_acquire`](crate::LockAnyRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Lease>, Error> {
        none_if_busy(self.wait(Duration::ZERO).acquire())
    }
}

/// A permit that is asked for: see [`leasehold::SemaphoreRequest`](crate::SemaphoreRequest).
#[must_use = "nothing is acquired until `acquire` or `try_acquire` is called"]
#[derive(Clone)]
pub struct SemaphoreRequest(permits::SemaphoreRequest);

settings! { SemaphoreRequest(permits::SemaphoreRequest):
    LockRequest::ttl(ttl: Duration);
    SemaphoreRequest::wait(wait: Duration);
    SemaphoreRequest::watch_holder();
    LockRequest::owner(owner: impl AsRef<str>);
    LockRequest::data(data: impl AsRef<[u8]>);
    LockRequest::max_hold(max_hold: Duration);
}

impl SemaphoreRequest {
    /// Acquires a permit, waiting as long as [`SemaphoreRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::SemaphoreRequest`](crate::SemaphoreRequest).
    pub fn acquire(self) -> Result<Permit, Error> {
        let permit = block_on(self.0.acquire(Caller::Blocking))?;
        Ok(Permit { index: permit.index(), lease: Lease(permit.into()) })
    }

    /// See [`leasehold::SemaphoreRequest::try_acquire`](crate::SemaphoreRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Permit>, Error> {
        none_if_busy(self.wait(Duration::ZERO).acquire())
    }
}

/// A held permit: see [`leasehold::Permit`](crate::Permit).
#[derive(Debug)]
#[must_use = "dropping a permit releases it at once"]
pub struct Permit {
    lease: Lease,
    index: usize,
}

impl Permit {
    /// See [`leasehold::Permit::index`](crate::Permit::index).
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Deref for Permit {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

/// A lock for readers and writers that is asked for: see [`leasehold::RwLockRequest`](crate::RwLockRequest).
#[must_use = "nothing is acquired until `read` or `write` is called"]
#[derive(Clone)]
pub struct RwLockRequest(rw_lock::RwLockRequest);

settings! { RwLockRequest(rw_lock::RwLockRequest):
    RwLockRequest::readers(readers: usize);
    LockRequest::ttl(ttl: Duration);
    RwLockRequest::wait(wait: Duration);
    LockRequest::owner(owner: impl AsRef<str>);
    LockRequest::max_hold(max_hold: Duration);
}

impl RwLockRequest {
    /// See [`leasehold::RwLockRequest::read`](crate::RwLockRequest::read).
    ///
    /// # Errors
    /// As there.
    pub fn read(self) -> Result<Lease, Error> {
        block_on(self.0.read_by(Caller::Blocking)).map(Lease)
    }

    /// See [`leasehold::RwLockRequest::write`](crate::RwLockRequest::write).
    ///
    /// # Errors
    /// As there.
    pub fn write(self) -> Result<Lease, Error> {
        block_on(self.0.write_by(Caller::Blocking)).map(Lease)
    }
}
