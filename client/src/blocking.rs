//! The same client for code without async, under the same names. Settings go through [`Client::connect_with`].
//!
//! A call sends its requests on the calling thread, so that the caller does not wait for another thread. Only the nodes of a
//! quorum are asked on the client's threads, all at once. Everything else, renewals above all, happens on the client's own
//! threads.
//!
//! [`leasehold::Client::blocking`](crate::Client::blocking) and [`leasehold::Lease::blocking`](crate::Lease::blocking) give a
//! client or a lease that async code has to a thread.

use std::ops::Deref;
use std::time::Duration;

use crate::admin::doctor::Finding;
use crate::admin::inspect::Waiters;
use crate::admin::list;
use crate::admin::release_if::{HolderMatch, ReleaseIfOutcome};
use crate::admin::revoke::RevokeOutcome;
use crate::admin::watch::{self, Change};
use crate::client;
use crate::connect::ClientBuilder;
use crate::driver::Caller;
use crate::error::{Error, LockInfo};
use crate::exec::block_on;
use crate::groups::elect::ElectionRequest;
use crate::groups::sessions::SessionInfo;
use crate::groups::shards::ShardsRequest;
use crate::host::time::Time;
use crate::locks::{all, any, lease, permits, request, rw_lock};
use crate::runs::completion::Completion;
use crate::runs::once::{self, RunInfo};
use crate::runs::result::RunResult;
use crate::stores::Stores;
use crate::url::StoreUrl;

/// See [`leasehold::Client`](crate::Client).
///
/// ```
/// use std::time::Duration;
///
/// let client = leasehold::blocking::Client::connect("memory:")?;
/// let lease = client.lock("invoice/42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(10)).acquire()?;
/// lease.check(Duration::from_secs(5))?;      // at least 5 s of validity left
/// lease.release()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client(client::Client);

impl client::Client {
    /// The same client for threads.
    pub fn blocking(&self) -> Client {
        Client(self.by(Caller::Blocking))
    }
}

/// Methods of the client that ask for something, and those that wait for the end of a future.
macro_rules! methods {
    (asks { $($ask:ident($($given:ident: $type:ty),*) -> $request:ident;)* }
     waits { $($wait:ident($($argument:ident: $of:ty),*) -> $answer:ty;)* }) => {
        impl Client {
            $(
                #[doc = concat!("See [`leasehold::Client::", stringify!($ask), "`](crate::Client::", stringify!($ask), ").")]
                pub fn $ask(&self, $($given: $type),*) -> $request {
                    $request(self.0.$ask($($given),*))
                }
            )*
            $(
                #[doc = concat!("See [`leasehold::Client::", stringify!($wait), "`](crate::Client::", stringify!($wait), ").")]
                ///
                /// # Errors
                /// As there.
                pub fn $wait(&self, $($argument: $of),*) -> Result<$answer, Error> {
                    block_on(self.0.$wait($($argument),*))
                }
            )*
        }
    };
}

methods! {
    asks {
        lock(resource: impl Into<String>) -> LockRequest;
        lock_all(resources: impl IntoIterator<Item = impl Into<String>>) -> LockAllRequest;
        lock_any(resources: impl IntoIterator<Item = impl Into<String>>) -> LockAnyRequest;
        semaphore(name: impl Into<String>, permits: usize) -> SemaphoreRequest;
        rw_lock(name: impl Into<String>) -> RwLockRequest;
        once(name: impl Into<String>) -> RunRequest;
        watch(resource: impl Into<String>) -> Watch;
    }
    waits {
        inspect(resource: impl AsRef<str>) -> Option<LockInfo>;
        waiters(resource: impl AsRef<str>) -> Option<Waiters>;
        inspect_run(name: &str, key: Option<&str>) -> RunInfo;
        forget_run(name: &str, key: Option<&str>) -> Option<Completion>;
        break_lock(resource: impl AsRef<str>) -> Option<LockInfo>;
        release_if(resource: impl AsRef<str>, holder: HolderMatch) -> ReleaseIfOutcome;
        revoke(resource: impl AsRef<str>, holder: impl Into<HolderMatch>) -> RevokeOutcome;
        sessions() -> Vec<SessionInfo>;
        revoke_session(label: impl AsRef<str>) -> Vec<SessionInfo>;
        set_permits(name: impl Into<String>, permits: usize) -> ();
        set_readers(name: impl Into<String>, readers: usize) -> ();
        set_shards(name: impl Into<String>, count: usize) -> ();
        doctor() -> Vec<Finding>;
    }
}

impl Client {
    /// See [`leasehold::Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    /// As there.
    pub fn connect(stores: impl Stores) -> Result<Self, Error> {
        Self::connect_with(ClientBuilder::default(), stores)
    }

    /// Connects with settings other than the defaults.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub fn connect_with(builder: ClientBuilder, stores: impl Stores) -> Result<Self, Error> {
        builder.open(&stores.urls()?, Time::System).map(|client| client.blocking())
    }

    /// See [`leasehold::Client::elect`](crate::Client::elect).
    pub fn elect(&self, resource: impl Into<String>) -> ElectionRequest {
        self.0.elect(resource)
    }

    /// See [`leasehold::Client::shards`](crate::Client::shards).
    pub fn shards(&self, name: impl Into<String>) -> ShardsRequest {
        self.0.shards(name)
    }

    /// The held locks whose names begin with `prefix`: see [`leasehold::Client::list`](crate::Client::list). An error ends
    /// the iterator.
    pub fn list(&self, prefix: impl Into<String>) -> Listing {
        Listing { inner: self.0.list(prefix), has_failed: false }
    }

    /// The runs whose resources begin with `prefix`: see [`leasehold::Client::runs`](crate::Client::runs). An error ends the
    /// iterator.
    pub fn runs(&self, prefix: impl Into<String>) -> Runs {
        Runs { inner: self.0.runs(prefix), has_failed: false }
    }

    /// See [`leasehold::Client::close`](crate::Client::close).
    ///
    /// # Errors
    /// As there.
    pub fn close(self) -> Result<(), Error> {
        block_on(self.0.close())
    }

    /// See [`leasehold::Client::store`](crate::Client::store).
    pub fn store(&self) -> &StoreUrl {
        self.0.store()
    }

    /// See [`leasehold::Client::stores`](crate::Client::stores).
    pub fn stores(&self) -> &[StoreUrl] {
        self.0.stores()
    }
}

/// Iterators over what is asked for page by page. An error ends them.
macro_rules! iterators {
    ($($(#[$doc:meta])* $name:ident of $item:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "nothing is asked before the first is taken from it"]
        pub struct $name {
            inner: list::$name,
            has_failed: bool,
        }

        impl $name {
            #[doc = concat!("See [`leasehold::", stringify!($name), "::page`](crate::", stringify!($name), "::page).")]
            ///
            /// # Errors
            /// As there.
            pub fn page(&mut self) -> Result<Option<Vec<$item>>, Error> {
                block_on(self.inner.page())
            }
        }

        impl Iterator for $name {
            type Item = Result<$item, Error>;

            fn next(&mut self) -> Option<Self::Item> {
                if self.has_failed {
                    return None;
                }
                let next = block_on(self.inner.next()).transpose();
                self.has_failed = matches!(next, Some(Err(_)));
                next
            }
        }
    )*};
}

iterators! {
    /// Iterates over held locks: see [`leasehold::Listing`](crate::Listing).
    Listing of LockInfo;
    /// Iterates over runs: see [`leasehold::Runs`](crate::Runs).
    Runs of RunInfo;
}

/// Iterates over the changes of a lock, without end, and waits for each: see [`leasehold::Watch`](crate::Watch).
#[derive(Debug)]
#[must_use = "nothing is read before the first change is asked for"]
pub struct Watch(watch::Watch);

impl Watch {
    /// See [`leasehold::Watch::every`](crate::Watch::every).
    pub fn every(self, every: Duration) -> Self {
        Self(self.0.every(every))
    }
}

impl Iterator for Watch {
    type Item = Result<Change, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(block_on(self.0.next()))
    }
}

/// A lock that is asked for: see [`leasehold::LockRequest`](crate::LockRequest).
#[must_use = "nothing is acquired until `acquire` or `try_acquire` is called"]
#[derive(Clone)]
pub struct LockRequest(pub(crate) request::LockRequest);

impl LockRequest {
    /// Acquires the lock, waiting as long as [`LockRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::LockRequest`](crate::LockRequest); [`ErrorKind::Config`](crate::ErrorKind::Config) when
    /// this thread holds the lock through this client and would wait for itself forever.
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire()).map(Lease)
    }

    /// See [`leasehold::LockRequest::try_acquire`](crate::LockRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Lease>, Error> {
        Ok(block_on(self.0.try_acquire())?.map(Lease))
    }
}

/// Several locks that are asked for at once: see [`leasehold::LockAllRequest`](crate::LockAllRequest).
#[must_use = "nothing is acquired until `acquire` is called"]
pub struct LockAllRequest(pub(crate) all::LockAllRequest);

impl LockAllRequest {
    /// Acquires all of them, or none.
    ///
    /// # Errors
    /// As [`LockRequest::acquire`], of the first lock that could not be acquired.
    pub fn acquire(self) -> Result<Leases, Error> {
        block_on(self.0.acquire()).map(Leases)
    }
}

/// One lock of several that is asked for: see [`leasehold::LockAnyRequest`](crate::LockAnyRequest).
#[must_use = "nothing is acquired until `acquire` or `try_acquire` is called"]
#[derive(Clone)]
pub struct LockAnyRequest(pub(crate) any::LockAnyRequest);

impl LockAnyRequest {
    /// Acquires the first that is free, waiting as long as [`LockAnyRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::LockAnyRequest`](crate::LockAnyRequest).
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire()).map(Lease)
    }

    /// See [`leasehold::LockAnyRequest::try_acquire`](crate::LockAnyRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Lease>, Error> {
        Ok(block_on(self.0.try_acquire())?.map(Lease))
    }
}

/// A permit that is asked for: see [`leasehold::SemaphoreRequest`](crate::SemaphoreRequest).
#[must_use = "nothing is acquired until `acquire` or `try_acquire` is called"]
#[derive(Clone)]
pub struct SemaphoreRequest(pub(crate) permits::SemaphoreRequest);

impl SemaphoreRequest {
    /// Acquires a permit, waiting as long as [`SemaphoreRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::SemaphoreRequest`](crate::SemaphoreRequest).
    pub fn acquire(self) -> Result<Permit, Error> {
        block_on(self.0.acquire()).map(Permit)
    }

    /// See [`leasehold::SemaphoreRequest::try_acquire`](crate::SemaphoreRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Permit>, Error> {
        Ok(block_on(self.0.try_acquire())?.map(Permit))
    }
}

/// A lock for readers and writers that is asked for: see [`leasehold::RwLockRequest`](crate::RwLockRequest).
#[must_use = "nothing is acquired until `read` or `write` is called"]
#[derive(Clone)]
pub struct RwLockRequest(pub(crate) rw_lock::RwLockRequest);

impl RwLockRequest {
    /// See [`leasehold::RwLockRequest::read`](crate::RwLockRequest::read).
    ///
    /// # Errors
    /// As there.
    pub fn read(self) -> Result<Lease, Error> {
        block_on(self.0.read()).map(Lease)
    }

    /// See [`leasehold::RwLockRequest::write`](crate::RwLockRequest::write).
    ///
    /// # Errors
    /// As there.
    pub fn write(self) -> Result<Lease, Error> {
        block_on(self.0.write()).map(Lease)
    }
}

/// A run that is asked for: see [`leasehold::RunRequest`](crate::RunRequest).
#[must_use = "nothing runs until `begin` is called"]
#[derive(Clone)]
pub struct RunRequest(pub(crate) once::RunRequest);

impl RunRequest {
    /// See [`leasehold::RunRequest::resource`](crate::RunRequest::resource).
    ///
    /// # Errors
    /// As there.
    pub fn resource(&self) -> Result<String, Error> {
        self.0.resource()
    }

    /// Answers what is to be done, waiting as long as [`RunRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::RunRequest`](crate::RunRequest).
    pub fn begin(self) -> Result<Once, Error> {
        Ok(match block_on(self.0.begin())? {
            once::Once::Run(run) => Once::Run(Run(run)),
            once::Once::Done(completion) => Once::Done(completion),
            once::Once::Running(holder) => Once::Running(holder),
            once::Once::Later(attempts) => Once::Later(attempts),
            once::Once::Replaced => Once::Replaced,
        })
    }
}

/// The answer to the request for a run: see [`leasehold::Once`](crate::Once).
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
#[non_exhaustive]
pub enum Once {
    /// The work is to be done now, by the caller.
    Run(Run),
    /// It was done.
    Done(Completion),
    /// Somebody else is at it; the holder, as far as the store shows it.
    Running(Option<LockInfo>),
    /// It has failed, and the pause before the next attempt is not over.
    Later(crate::Attempts),
    /// A newer request has taken the place of this one: see [`RunRequest::replace`].
    Replaced,
}

/// A run: see [`leasehold::Run`](crate::Run).
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
pub struct Run(once::Run);

impl Run {
    /// See [`leasehold::Run::finish`](crate::Run::finish).
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self) -> Result<(), Error> {
        block_on(self.0.finish_by(None, Caller::Blocking))
    }

    /// See [`leasehold::Run::finish_with`](crate::Run::finish_with).
    ///
    /// # Errors
    /// As there.
    pub fn finish_with(&self, result: RunResult) -> Result<(), Error> {
        block_on(self.0.finish_by(Some(result.to_keep()), Caller::Blocking))
    }

    /// See [`leasehold::Run::attempts`](crate::Run::attempts).
    pub fn attempts(&self) -> Option<&crate::Attempts> {
        self.0.attempts()
    }

    /// See [`leasehold::Run::fail`](crate::Run::fail).
    ///
    /// # Errors
    /// As there.
    pub fn fail(&self, reason: impl AsRef<str>) -> Result<(), Error> {
        block_on(crate::runs::attempts::fail(&self.0, reason.as_ref(), Caller::Blocking))
    }

    /// See [`leasehold::Run::completion_in`](crate::Run::completion_in).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "postgres")]
    pub fn completion_in(&self) -> Result<crate::CompletionStatement, Error> {
        self.0.completion_in()
    }

    /// See [`leasehold::Run::completion_in_with`](crate::Run::completion_in_with).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "postgres")]
    pub fn completion_in_with(&self, result: &RunResult) -> Result<crate::CompletionStatement, Error> {
        self.0.completion_in_with(result)
    }
}

impl Deref for Run {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        self.0.blocking()
    }
}

/// A held permit: see [`leasehold::Permit`](crate::Permit).
#[derive(Debug)]
#[must_use = "dropping a permit releases it at once"]
pub struct Permit(permits::Permit);

impl Permit {
    /// See [`leasehold::Permit::index`](crate::Permit::index).
    pub fn index(&self) -> usize {
        self.0.index()
    }
}

impl Deref for Permit {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        self.0.blocking()
    }
}

/// A held lock. All that a [`leasehold::Lease`](crate::Lease) can do, it can do as well; what that awaits, it waits for.
#[must_use = "dropping a lease releases the lock at once: write `let _lease = `, since `let _ = ` drops it too"]
#[derive(Debug)]
#[repr(transparent)]
pub struct Lease(lease::Lease);

impl lease::Lease {
    /// The same lease for a thread.
    pub const fn blocking(&self) -> &Lease {
        // SAFETY: the type is a transparent wrapper of this one, and has no invariants of its own.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl Lease {
    /// See [`leasehold::Lease::release`](crate::Lease::release).
    ///
    /// # Errors
    /// As there.
    pub fn release(&self) -> Result<(), Error> {
        block_on(self.0.release_by(Caller::Blocking))
    }

    /// Waits until the lease is over, and says why; [`ErrorKind::NotOwned`](crate::ErrorKind::NotOwned) when it was
    /// released.
    pub fn lost(&self) -> Error {
        block_on(self.0.ended()).unwrap_or_else(|| self.0.not_owned())
    }
}

impl Deref for Lease {
    type Target = lease::Lease;

    fn deref(&self) -> &lease::Lease {
        &self.0
    }
}

/// Several leases that were taken together: see [`leasehold::Leases`](crate::Leases).
#[must_use = "dropping the leases releases the locks at once"]
#[derive(Debug)]
#[repr(transparent)]
pub struct Leases(all::Leases);

impl all::Leases {
    /// The same leases for a thread.
    pub const fn blocking(&self) -> &Leases {
        // SAFETY: the type is a transparent wrapper of this one, and has no invariants of its own.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl Leases {
    /// See [`leasehold::Leases::check`](crate::Leases::check).
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, min: Duration) -> Result<(), Error> {
        self.0.check(min)
    }

    /// See [`leasehold::Leases::release`](crate::Leases::release).
    ///
    /// # Errors
    /// As there.
    pub fn release(&self) -> Result<(), Error> {
        block_on(self.0.release())
    }
}

impl Deref for Leases {
    type Target = [Lease];

    fn deref(&self) -> &[Lease] {
        let leases: *const [lease::Lease] = &raw const *self.0.0;
        // SAFETY: the elements are transparent wrappers, as above.
        unsafe { &*(leases as *const [Lease]) }
    }
}
