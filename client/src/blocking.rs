//! The same client for code without async, under the same names. Settings go through [`Client::connect_with`].
//!
//! A call sends its requests on the calling thread, so that the caller does not wait for another thread. Only the nodes of a
//! quorum are asked on the client's threads, all at once. Everything else, renewals above all, happens on the client's own
//! threads.

mod permits;
mod sessions;

use std::ops::Deref;
use std::time::Duration;

use crate::admin::doctor::Finding;
use crate::admin::inspect::Waiters;
use crate::admin::list;
use crate::admin::release_if::{HolderMatch, ReleaseIfOutcome};
use crate::admin::revoke::RevokeOutcome;
use crate::admin::watch::{self, Change};
use crate::client::{self, confirm_closed};
use crate::connect::ClientBuilder;
use crate::driver::Caller;
use crate::error::{Error, LockInfo};
use crate::exec::block_on;
use crate::forward::settings;
use crate::groups::elect::ElectionRequest;
use crate::groups::shards::ShardsRequest;
use crate::host::sync::{Arc, atomic::Ordering};
use crate::locks::all;
use crate::locks::lease;
use crate::locks::request::{self, none_if_busy};
use crate::runs::mark::Mark;
use crate::runs::once::{self, RunInfo};
use crate::stores::Stores;
use crate::url::StoreUrl;

pub use permits::{LockAnyRequest, Permit, RwLockRequest, SemaphoreRequest};

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
        builder.open(stores.urls()?).map(Self)
    }

    /// See [`leasehold::Client::lock`](crate::Client::lock).
    pub fn lock(&self, resource: impl Into<String>) -> LockRequest {
        LockRequest(self.0.lock(resource))
    }

    /// See [`leasehold::Client::lock_all`](crate::Client::lock_all).
    pub fn lock_all<R: Into<String>>(&self, resources: impl IntoIterator<Item = R>) -> LockAllRequest {
        LockAllRequest(self.0.lock_all(resources))
    }

    /// See [`leasehold::Client::once`](crate::Client::once).
    pub fn once(&self, name: impl Into<String>) -> RunRequest {
        RunRequest(self.0.once(name))
    }

    /// See [`leasehold::Client::inspect_run`](crate::Client::inspect_run).
    ///
    /// # Errors
    /// As there.
    pub fn inspect_run(&self, name: &str, key: Option<&str>) -> Result<RunInfo, Error> {
        block_on(self.0.inspect_run_by(name, key, Caller::Blocking))
    }

    /// See [`leasehold::Client::forget_run`](crate::Client::forget_run).
    ///
    /// # Errors
    /// As there.
    pub fn forget_run(&self, name: &str, key: Option<&str>) -> Result<Option<Mark>, Error> {
        block_on(self.0.forget_run_by(name, key, Caller::Blocking))
    }

    /// See [`leasehold::Client::elect`](crate::Client::elect).
    pub fn elect(&self, resource: impl Into<String>) -> ElectionRequest {
        self.0.elect(resource)
    }

    /// See [`leasehold::Client::shards`](crate::Client::shards).
    pub fn shards(&self, name: impl Into<String>) -> ShardsRequest {
        self.0.shards(name)
    }

    /// See [`leasehold::Client::set_shards`](crate::Client::set_shards).
    ///
    /// # Errors
    /// As there.
    pub fn set_shards(&self, name: impl Into<String>, count: usize) -> Result<(), Error> {
        block_on(self.0.set_shards(name, count))
    }

    /// See [`leasehold::Client::waiters`](crate::Client::waiters).
    ///
    /// # Errors
    /// As there.
    pub fn waiters(&self, resource: impl AsRef<str>) -> Result<Option<Waiters>, Error> {
        block_on(self.0.waiters(resource))
    }

    /// See [`leasehold::Client::inspect`](crate::Client::inspect).
    ///
    /// # Errors
    /// As there.
    pub fn inspect(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        block_on(self.0.inspect_by(resource.as_ref(), Caller::Blocking))
    }

    /// The held locks whose names begin with `prefix`: see [`leasehold::Client::list`](crate::Client::list). An error ends
    /// the iterator.
    pub fn list(&self, prefix: impl Into<String>) -> Listing {
        Listing { inner: self.0.list(prefix), has_failed: false }
    }

    /// The changes of a lock's holder, without end: see [`leasehold::Client::watch`](crate::Client::watch). Each waits.
    pub fn watch(&self, resource: impl Into<String>) -> Watch {
        Watch(self.0.watch(resource))
    }

    /// See [`leasehold::Client::break_lock`](crate::Client::break_lock).
    ///
    /// # Errors
    /// As there.
    pub fn break_lock(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        block_on(self.0.break_by(resource.as_ref(), Caller::Blocking))
    }

    /// See [`leasehold::Client::release_if`](crate::Client::release_if).
    ///
    /// # Errors
    /// As there.
    pub fn release_if(&self, resource: impl AsRef<str>, holder: HolderMatch) -> Result<ReleaseIfOutcome, Error> {
        block_on(self.0.release_if_by(resource.as_ref(), &holder, Caller::Blocking))
    }

    /// See [`leasehold::Client::revoke`](crate::Client::revoke).
    ///
    /// # Errors
    /// As there.
    pub fn revoke(&self, resource: impl AsRef<str>, holder: impl Into<HolderMatch>) -> Result<RevokeOutcome, Error> {
        block_on(self.0.revoke_by(resource.as_ref(), &holder.into(), Caller::Blocking))
    }

    /// See [`leasehold::Client::doctor`](crate::Client::doctor).
    ///
    /// # Errors
    /// As there.
    pub fn doctor(&self) -> Result<Vec<Finding>, Error> {
        self.0.driver().check_open()?;
        Ok((self.0.diagnosis())())
    }

    /// See [`leasehold::Client::close`](crate::Client::close).
    ///
    /// # Errors
    /// As there.
    pub fn close(self) -> Result<(), Error> {
        let driver = Arc::clone(self.0.driver());
        driver.check_process()?;
        driver.close();
        self.0.shared.closed.store(true, Ordering::Relaxed);
        confirm_closed(driver.wait_closed())
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

/// Iterates over held locks: see [`leasehold::Listing`](crate::Listing).
#[derive(Debug)]
#[must_use = "nothing is asked before the first lock is taken from it"]
pub struct Listing {
    inner: list::Listing,
    has_failed: bool,
}

impl Listing {
    /// See [`leasehold::Listing::page`](crate::Listing::page).
    ///
    /// # Errors
    /// As there.
    pub fn page(&mut self) -> Result<Option<Vec<LockInfo>>, Error> {
        block_on(self.inner.page())
    }
}

impl Iterator for Listing {
    type Item = Result<LockInfo, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = block_on(self.inner.next()).transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}

/// Iterates over the changes of a lock: see [`leasehold::Watch`](crate::Watch).
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
pub struct LockRequest(request::LockRequest);

settings! { LockRequest(request::LockRequest):
    LockRequest::ttl(ttl: Duration);
    LockRequest::wait(wait: Duration);
    LockRequest::watch_holder();
    LockRequest::owner(owner: impl AsRef<str>);
    LockRequest::data(data: impl AsRef<[u8]>);
    LockRequest::lock_delay(lock_delay: Duration);
    LockRequest::max_hold(max_hold: Duration);
    LockRequest::fair(fair: bool);
    LockRequest::renew_every(every: Duration);
    LockRequest::no_renewal();
}

impl LockRequest {
    /// Acquires the lock, waiting as long as [`LockRequest::wait`] says.
    ///
    /// # Errors
    /// As awaiting [`leasehold::LockRequest`](crate::LockRequest); [`ErrorKind::Config`](crate::ErrorKind::Config) when
    /// this thread holds the lock through this client and would wait for itself forever.
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire(Caller::Blocking)).map(Lease)
    }

    /// See [`leasehold::LockRequest::try_acquire`](crate::LockRequest::try_acquire).
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(self) -> Result<Option<Lease>, Error> {
        let lease = none_if_busy(block_on(self.0.once().acquire(Caller::Blocking)))?;
        Ok(lease.map(Lease))
    }
}

/// A run that is asked for: see [`leasehold::RunRequest`](crate::RunRequest).
#[must_use = "nothing runs until `begin` is called"]
#[derive(Clone)]
pub struct RunRequest(once::RunRequest);

settings! { RunRequest(once::RunRequest):
    RunRequest::key(key: impl Into<String>);
    RunRequest::every(period: Duration);
    RunRequest::offset(offset: Duration);
    RunRequest::cooldown(cooldown: Duration);
    RunRequest::keep(keep: Duration);
    RunRequest::wait(wait: Duration);
    RunRequest::watch_holder();
    LockRequest::ttl(ttl: Duration);
    LockRequest::owner(owner: impl AsRef<str>);
    LockRequest::data(data: impl AsRef<[u8]>);
    LockRequest::lock_delay(lock_delay: Duration);
    LockRequest::max_hold(max_hold: Duration);
    LockRequest::renew_every(every: Duration);
    LockRequest::no_renewal();
    RunRequest::even_if_done();
    RunRequest::trust_quorum();
}

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
        Ok(match block_on(self.0.begin(Caller::Blocking))? {
            once::Once::Run(run) => Once::Run(Run(Lease(run.into_lease()))),
            once::Once::Done(mark) => Once::Done(mark),
            once::Once::Running(holder) => Once::Running(holder),
        })
    }
}

/// The answer to the request for a run: see [`leasehold::Once`](crate::Once).
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
pub enum Once {
    /// The work is to be done now, by the caller.
    Run(Run),
    /// It was done.
    Done(Mark),
    /// Somebody else is at it; the holder, as far as the store shows it.
    Running(Option<LockInfo>),
}

/// A run: see [`leasehold::Run`](crate::Run).
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
pub struct Run(Lease);

impl Run {
    /// See [`leasehold::Run::finish`](crate::Run::finish).
    ///
    /// # Errors
    /// As there.
    pub fn finish(&self) -> Result<(), Error> {
        block_on(self.0.0.finish_by(Caller::Blocking))
    }

    /// See [`leasehold::Run::mark_in`](crate::Run::mark_in).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "postgres")]
    pub fn mark_in(&self) -> Result<crate::MarkStatement, Error> {
        self.0.0.mark_in()
    }
}

impl Deref for Run {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.0
    }
}

/// Several locks that are asked for at once: see [`leasehold::LockAllRequest`](crate::LockAllRequest).
#[must_use = "nothing is acquired until `acquire` is called"]
pub struct LockAllRequest(all::LockAllRequest);

settings! { LockAllRequest(all::LockAllRequest):
    LockAllRequest::ttl(ttl: Duration);
    LockAllRequest::wait(wait: Duration);
    LockAllRequest::owner(owner: impl Into<String>);
    LockAllRequest::max_hold(max_hold: Duration);
}

impl LockAllRequest {
    /// Acquires all of them, or none.
    ///
    /// # Errors
    /// As [`LockRequest::acquire`], of the first lock that could not be acquired.
    pub fn acquire(self) -> Result<Leases, Error> {
        let leases = block_on(self.0.acquire(Caller::Blocking))?;
        Ok(Leases(leases.0.into_iter().map(Lease).collect()))
    }
}

/// Several leases that were taken together: see [`leasehold::Leases`](crate::Leases).
#[must_use = "dropping the leases releases the locks at once"]
#[derive(Debug)]
pub struct Leases(Vec<Lease>);

impl Leases {
    /// See [`leasehold::Leases::check`](crate::Leases::check).
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, min: Duration) -> Result<(), Error> {
        self.0.iter().try_for_each(|lease| lease.check(min))
    }

    /// See [`leasehold::Leases::release`](crate::Leases::release).
    ///
    /// # Errors
    /// As there.
    pub fn release(self) -> Result<(), Error> {
        let leases = all::Leases(self.0.into_iter().map(|lease| lease.0).collect());
        block_on(leases.release_each())
    }
}

impl Deref for Leases {
    type Target = [Lease];

    fn deref(&self) -> &[Lease] {
        &self.0
    }
}

/// A held lock: see [`leasehold::Lease`](crate::Lease).
#[must_use = "dropping a lease releases the lock at once: write `let _lease = `, since `let _ = ` drops it too"]
#[derive(Debug)]
pub struct Lease(lease::Lease);

impl Lease {
    /// See [`leasehold::Lease::token`](crate::Lease::token).
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// See [`leasehold::Lease::resource`](crate::Lease::resource).
    pub fn resource(&self) -> &str {
        self.0.resource()
    }

    /// See [`leasehold::Lease::owner`](crate::Lease::owner).
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// See [`leasehold::Lease::remaining`](crate::Lease::remaining).
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// See [`leasehold::Lease::protected_for`](crate::Lease::protected_for).
    pub fn protected_for(&self) -> Duration {
        self.0.protected_for()
    }

    /// See [`leasehold::Lease::check`](crate::Lease::check).
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, min: Duration) -> Result<(), Error> {
        self.0.check(min)
    }

    /// See [`leasehold::Lease::is_lost`](crate::Lease::is_lost).
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Waits until the lease is over, and says why; [`ErrorKind::NotOwned`](crate::ErrorKind::NotOwned) when it was
    /// released.
    pub fn lost(&self) -> Error {
        block_on(self.0.ended()).unwrap_or_else(|| self.0.not_owned())
    }

    /// See [`leasehold::Lease::on_lost`](crate::Lease::on_lost).
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        self.0.on_lost(callback);
    }

    /// See [`leasehold::Lease::on_expiring`](crate::Lease::on_expiring).
    pub fn on_expiring(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.on_expiring(callback);
    }

    /// See [`leasehold::Lease::release`](crate::Lease::release).
    ///
    /// # Errors
    /// As there.
    pub fn release(&self) -> Result<(), Error> {
        block_on(self.0.release_by(Caller::Blocking))
    }
}
