//! Requests for one lease of what is composed of locks.

use super::{Held, wait};
use crate::driver::Caller;
use crate::error::Error;
use crate::host::sync::Arc;
use crate::locks::any::LockAnyRequest;
use crate::locks::permits::SemaphoreRequest;
use crate::locks::request::{LockRequest, none_if_busy};
use crate::locks::rw_lock::RwLockRequest;

/// A request for one lease of what is composed of locks. It is made of a request for a lock with its settings.
#[derive(Clone)]
pub enum Composed {
    /// See [`Client::lock_any`](crate::Client::lock_any).
    Any(LockAnyRequest),
    /// See [`Client::semaphore`](crate::Client::semaphore).
    Permit(SemaphoreRequest),
    /// See [`RwLockRequest::read`].
    Read(RwLockRequest),
    /// See [`RwLockRequest::write`].
    Write(RwLockRequest),
}

impl Composed {
    /// The first that is free of the locks with these names.
    pub fn any(request: LockRequest, names: Vec<String>) -> Self {
        Self::Any(LockAnyRequest::new(request, names))
    }

    /// One of so many permits.
    pub fn permit(request: LockRequest, name: String, permits: usize) -> Self {
        Self::Permit(SemaphoreRequest::new(request, name, permits))
    }

    /// A read beside other readers. `None` is the default number of readers.
    pub fn read(request: LockRequest, name: String, readers: Option<usize>) -> Self {
        Self::Read(shared(request, name, readers))
    }

    /// A write alone. `None` is the default number of readers.
    pub fn write(request: LockRequest, name: String, readers: Option<usize>) -> Self {
        Self::Write(shared(request, name, readers))
    }

    /// See [`by_task`](super::by_task).
    #[must_use]
    pub fn by_task(self, task: u64) -> Self {
        self.map(|request| request.by_task(task))
    }

    /// Acquires it. Gives up, with nothing held, once `interrupted` returns `true`.
    ///
    /// # Errors
    /// As awaiting the request; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when it was interrupted.
    pub fn acquire(self, interrupted: impl FnMut() -> bool) -> Result<Held, Error> {
        wait(self.map(|request| request.by(Caller::Blocking)).held(), interrupted)
    }

    /// Acquires it without waiting; `None` when others hold it.
    ///
    /// # Errors
    /// As [`Composed::acquire`].
    pub fn try_acquire(self, interrupted: impl FnMut() -> bool) -> Result<Option<Held>, Error> {
        none_if_busy(self.map(LockRequest::once).acquire(interrupted))
    }

    /// Acquires it.
    ///
    /// # Errors
    /// As awaiting the request.
    pub async fn acquire_async(self) -> Result<Held, Error> {
        self.held().await
    }

    /// Acquires it without waiting; `None` when others hold it.
    ///
    /// # Errors
    /// As awaiting the request.
    pub async fn try_acquire_async(self) -> Result<Option<Held>, Error> {
        none_if_busy(self.map(LockRequest::once).held().await)
    }

    async fn held(self) -> Result<Held, Error> {
        let lease = match self {
            Self::Permit(request) => return request.acquire().await.map(|permit| Held::Permit(Arc::new(permit))),
            Self::Any(request) => request.acquire().await,
            Self::Read(request) => request.read().await,
            Self::Write(request) => request.write().await,
        };
        lease.map(Held::from)
    }

    fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        match self {
            Self::Any(request) => Self::Any(request.map(change)),
            Self::Permit(request) => Self::Permit(request.map(change)),
            Self::Read(request) => Self::Read(request.map(change)),
            Self::Write(request) => Self::Write(request.map(change)),
        }
    }
}

fn shared(request: LockRequest, name: String, readers: Option<usize>) -> RwLockRequest {
    let request = RwLockRequest::new(request, name);
    match readers {
        Some(readers) => request.readers(readers),
        None => request,
    }
}
