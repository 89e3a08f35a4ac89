//! The pages of a list, and the changes of a lock.

use leasehold::{Change, ffi};
use napi_derive::napi;

use crate::failure::Failure;
use crate::info::LockInfo;
use crate::reactor::{Operation, Outcome};

/// The held locks of a store, page by page.
#[napi]
pub struct Pages(ffi::Pages<leasehold::LockInfo>);

impl Pages {
    pub(crate) fn new(pages: ffi::Pages<leasehold::LockInfo>) -> Self {
        Self(pages)
    }
}

#[napi]
impl Pages {
    /// The locks of the next page; nothing after the last one.
    #[napi(catch_unwind)]
    pub fn next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { Ok(Outcome::Page(next.await?)) })
    }
}

/// The runs of a store, page by page.
#[napi]
pub struct RunPages(ffi::Pages<leasehold::RunInfo>);

impl RunPages {
    pub(crate) fn new(pages: ffi::Pages<leasehold::RunInfo>) -> Self {
        Self(pages)
    }
}

#[napi]
impl RunPages {
    /// The runs of the next page; nothing after the last one.
    #[napi(catch_unwind)]
    pub fn next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { Ok(Outcome::Runs(next.await?)) })
    }
}

/// The changes of a lock, without end.
#[napi]
pub struct Changes(ffi::Changes);

impl Changes {
    pub(crate) fn new(changes: ffi::Changes) -> Self {
        Self(changes)
    }
}

#[napi]
impl Changes {
    /// Waits for the next change.
    #[napi(catch_unwind)]
    pub fn next(&self) -> Operation {
        let next = self.0.next_async();
        Operation::new(async move { Ok(Outcome::Change(next.await?)) })
    }
}

/// A change of a lock's holder. Of the holder and the failure, the type says which is there.
#[napi]
pub struct Changed(Change);

impl Changed {
    pub(crate) fn new(change: Change) -> Self {
        Self(change)
    }
}

#[napi]
impl Changed {
    /// The new holder.
    #[napi(getter, catch_unwind)]
    pub fn holder(&self) -> Option<LockInfo> {
        let Change::Held(holder) = &self.0 else { return None };
        Some(holder.clone().into())
    }

    /// Why the store cannot be read.
    #[napi(getter, catch_unwind)]
    pub fn failure(&self) -> Option<Failure> {
        let Change::Unreadable(error) = &self.0 else { return None };
        Some(error.clone().into())
    }
}
