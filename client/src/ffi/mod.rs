//! Building blocks for bindings to other languages: blocking calls, an [`Executor`] for event loops, and with the feature
//! `metrics` a queue of events and metrics.
//!
//! A binding keeps one kind of handle, that of [`Client`] and [`Lease`], for callers with and without async. Callers without
//! async use those of [`Client::blocking`] and [`Lease::blocking`], or the functions of this module, which send the requests of a
//! call on the calling thread as well. Calls that may wait long can be **interrupted**: while a call waits, and sends no request, it asks every
//! 50 ms whether the caller wants to give up, because of a signal, for example.

mod composed;
mod events;
mod executor;
mod items;
mod memory;
#[cfg(feature = "metrics")]
pub mod observe;
mod runs;
#[cfg(feature = "metrics")]
mod samples;
mod series;
mod sightings;
mod terms;
#[cfg(feature = "testing")]
mod test_clock;

use std::ops::Deref;
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::time::wait_told_at;

use crate::admin::release_if::HolderMatch;
use crate::client::{Client, Shared, confirm_closed};
use crate::driver::{Caller, Driver};
use crate::error::{Error, ErrorKind, LockInfo};
use crate::exec::{self, Pause, Stopped};
use crate::fence::Guards;
use crate::groups::shards::Shard;
use crate::host::fork;
use crate::host::sync::atomic::Ordering;
use crate::host::sync::{Arc, Weak};
use crate::host::time::Time;
use crate::locks::all::{Leases, LockAllRequest};
use crate::locks::lease::Lease;
use crate::locks::permits::Permit;
use crate::locks::request::{LockRequest, none_if_busy};

pub use crate::admin::list::{PageStart, Paged};
pub use crate::callbacks::CallbackEnd;
pub use crate::event_loop::{Interest, Poller};
pub use crate::fence::Writing;
pub use crate::host::fork::PerProcess;
pub use crate::host::sync::Mutex;
pub use crate::lengths::meant as meant_length;
pub use composed::Composed;
pub use events::{EventSubscriber, LogEvent};
pub use executor::{AllEnded, Ended, Executor, Task};
pub use items::ItemUpdate;
pub use memory::KeptMemory;
#[cfg(feature = "postgres")]
pub use runs::completion_in;
pub use runs::{
    RunOutcome, attempts, begin_run, check_run, fail, fail_async, finish, finish_async, parts_of_run, run_lease,
    run_left,
};
pub use rustix::fd::RawFd;
pub use series::{Changes, Pages, list_from, runs_from};
pub use sightings::{Sighting, boot_id, seen_before, sightings};
pub use terms::{CallbackEnded, CallbackRunner, Ends, Unawaited, begin_to_end, on_gain, on_loss, on_start, on_stop};
#[cfg(feature = "testing")]
pub use test_clock::{
    Settler, has_test_clock, is_endless, is_moved_here, items_beside, lose, settle, settle_lease, step_until,
};

/// The same client for calls that [`wait`] waits for: they send their requests on the calling thread.
pub fn by_thread(client: &Client) -> Client {
    client.by(Caller::Blocking)
}

/// Waits for a call. Gives it up once `interrupted` returns `true`.
///
/// # Errors
/// As awaiting the call; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn wait<T>(call: impl Future<Output = Result<T, Error>>, interrupted: impl FnMut() -> bool) -> Result<T, Error> {
    exec::block_on_until(call, asking(interrupted)).unwrap_or_else(|stopped| Err(stopped.into_error(given_up)))
}

/// See [`LockRequest`]. Gives up, with nothing held, once `interrupted` returns `true`.
///
/// # Errors
/// As [`blocking::LockRequest::acquire`](crate::blocking::LockRequest::acquire); [`ErrorKind::Cancelled`] when it was
/// interrupted.
pub fn acquire(request: LockRequest, interrupted: impl FnMut() -> bool) -> Result<Lease, Error> {
    wait(request.by(Caller::Blocking).acquire(), interrupted)
}

/// Awaits the request without an allocation for its future.
///
/// # Errors
/// As awaiting the request.
pub fn acquire_async(request: LockRequest) -> impl Future<Output = Result<Lease, Error>> + Send {
    request.acquire()
}

/// See [`LockRequest::try_acquire`].
///
/// # Errors
/// As there; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn try_acquire(request: LockRequest, interrupted: impl FnMut() -> bool) -> Result<Option<Lease>, Error> {
    none_if_busy(acquire(request.once(), interrupted))
}

/// See [`LockAllRequest`]. Gives up, with nothing held, once `interrupted` returns `true`.
///
/// # Errors
/// As awaiting the request; [`ErrorKind::Cancelled`] when it was interrupted.
pub fn acquire_all(request: LockAllRequest, interrupted: impl FnMut() -> bool) -> Result<Leases, Error> {
    wait(request.map(|request| request.by(Caller::Blocking)).acquire(), interrupted)
}

/// Why the last renewal of a lease failed, if it did, for those who end its work before it is lost.
pub fn renewal_fault(lease: &Lease) -> Option<String> {
    lease.renewal_fault().map(|fault| fault.to_string())
}

/// Tells if a job with this completion is skipped for the last twentieth of its cooldown, for those who have no log.
pub fn is_just_missed(cooldown: Duration, completion: &crate::runs::completion::Completion) -> bool {
    crate::runs::once::is_just_missed(cooldown, completion)
}

/// The length of a wait at its next report, if the last one came after `told`.
pub fn wait_told_after(told: Duration) -> Duration {
    wait_told_at(Monotonic::default(), told).since(Monotonic::default())
}

/// Tells if a holder with this token and label matches `holder`, for fake stores in tests.
///
/// # Errors
/// As [`Client::release_if`], where `holder` names neither.
pub fn is_meant(holder: &HolderMatch, token: Option<u64>, owner: Option<&str>) -> Result<bool, Error> {
    holder.check()?;
    Ok(holder.fits(token, owner))
}

/// Decides if the error of a release is raised at the end of code that ran under a lock: a loss must be reported, but
/// an unconfirmed release does not make that code fail.
///
/// # Errors
/// That of the release, if the lease was lost.
pub fn left(was_lost: bool, released: Result<(), Error>) -> Result<(), Error> {
    match released {
        Err(error) if was_lost || error.kind() == ErrorKind::Lost => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A lease by itself, or one of several that were taken together; those end with the last of their handles.
#[derive(Clone, Debug)]
pub enum Held {
    /// By itself.
    Single(Arc<Lease>),
    /// The lease of a permit.
    Permit(Arc<Permit>),
    /// The lease of a shard.
    Shard(Arc<Shard>),
    /// The one at this position.
    OneOf(Arc<Leases>, usize),
}

impl Deref for Held {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        match self {
            Self::Single(lease) => lease,
            Self::Permit(permit) => permit,
            Self::Shard(shard) => shard,
            Self::OneOf(leases, at) => &leases[*at],
        }
    }
}

impl From<Lease> for Held {
    fn from(lease: Lease) -> Self {
        Self::Single(Arc::new(lease))
    }
}

impl Held {
    /// The number of the permit or shard, if it is one.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Permit(permit) => Some(permit.index()),
            Self::Shard(shard) => Some(shard.index()),
            Self::Single(_) | Self::OneOf(..) => None,
        }
    }
}

/// Ends the lease this long from now; each call starts the time again. Its holder learns that it is lost, and the lock
/// is released, even if the work is not done. Until then it is renewed as usual. For locks of other libraries, whose
/// time limit means that. Returns whether there was a lease to end.
pub fn end_after(lease: &Lease, time: Duration) -> bool {
    lease.end_after(time)
}

/// Ends the lease now, since its record was seen to be gone: its holder is told that it is lost, and others of this process
/// need not wait until a renewal would find that out.
pub fn end_gone(lease: &Lease) {
    lease.end_gone();
}

/// Tells if the holder that a store shows is this lease, as long as it is held. Others that try may make the store show a
/// higher token.
pub fn is_shown_by(lease: &Lease, info: &LockInfo) -> bool {
    lease.is_shown_by(info)
}

/// Tells if the store shows the lease. Its record then stands for `record_ttl` from now on, however somebody has changed
/// that by hand. The lease itself lasts no longer for it. On a quorum nothing is changed. For locks of other libraries.
///
/// # Errors
/// As [`Client::inspect`].
pub async fn refresh(client: &Client, lease: &Lease, record_ttl: Duration) -> Result<bool, Error> {
    client.refresh(lease, record_ttl).await
}

/// Waits until the lease is over, and says whether it is: not so when `most` has passed, or `interrupted` answered `true`.
///
/// # Errors
/// By the clock of a test the wait never ends.
pub fn wait_until_over(
    lease: &Lease,
    most: Option<Duration>,
    mut interrupted: impl FnMut() -> bool,
) -> Result<bool, Error> {
    let until = most.map(|most| lease.time().monotonic().plus(most));
    let pause = move || match until.map(|until| until.since(lease.time().monotonic())) {
        _ if interrupted() => Pause::GiveUp,
        None => Pause::AskAfter(SLICE),
        Some(left) if left.is_zero() => Pause::GiveUp,
        Some(left) => Pause::AskWithin(SLICE, left),
    };
    match exec::block_on_until(lease.ended(), pause) {
        Ok(_) => Ok(true),
        Err(Stopped::GivenUp) => Ok(false),
        #[cfg(feature = "testing")]
        Err(Stopped::Endless(error)) => Err(error),
    }
}

/// Lets a write to an item through, as [`Guards::with`](crate::fence::Guards::with) does, or with a `number`
/// [`Guards::with_in_order`](crate::fence::Guards::with_in_order): for a host whose code must not run under a frame of
/// ours. Nobody can claim the item before the answer is dropped, on any thread.
///
/// # Errors
/// As there.
pub fn enter(guards: &Guards, item: &str, token: u64, number: Option<u64>) -> Result<Writing, Error> {
    Ok(guards.enter(item, token, number)?)
}

/// Closes several clients at once, so that they share one patience of 2 s; clients that a forked child inherited are left
/// alone. See [`Client::close`].
///
/// # Errors
/// [`ErrorKind::StoreUnavailable`] when a release is not confirmed yet; it goes on in the background.
pub fn close(clients: impl IntoIterator<Item = Client>) -> Result<(), Error> {
    let mut closing: Vec<Arc<Driver>> = Vec::new();
    for client in clients {
        let driver = client.driver();
        if !driver.is_inherited() {
            driver.close();
            closing.push(Arc::clone(driver));
            client.shared.closed.store(true, Ordering::Relaxed);
        }
    }
    let confirmed = match closing.as_slice() {
        [] => true,
        [driver] => driver.wait_closed(),
        several @ [driver, ..] => {
            let closed = driver.time().each(several, |driver| driver.wait_closed());
            closed.into_iter().all(|confirmed| confirmed == Some(true))
        }
    };
    confirm_closed(confirmed)
}

/// The label of leases that this thread acquires without giving one.
pub fn owner(client: &Client) -> String {
    client.shared.owner().as_str().to_owned()
}

/// The error of a lease that was released before.
pub fn already_released(resource: &str) -> Error {
    Error::already_released(resource)
}

/// From now on [`close_tracked`] closes the client, as long as it or a lease of it is there.
pub fn track(client: &Client) {
    let mut tracked = TRACKED.get().lock();
    tracked.retain(|shared| shared.strong_count() > 0);
    tracked.push(Arc::downgrade(&client.shared));
}

/// For the end of a host: closes all clients that this process has given to [`track`], as [`close`] does.
///
/// # Errors
/// As [`close`].
pub fn close_tracked() -> Result<(), Error> {
    let tracked = std::mem::take(&mut *TRACKED.get().lock());
    close(tracked.iter().filter_map(Weak::upgrade).map(|shared| Client { shared, caller: Caller::Blocking }))
}

static TRACKED: PerProcess<Mutex<Vec<Weak<Shared>>>> = PerProcess::new(|| Mutex::new(Vec::new()));

/// Says what the host's language calls this thread, for the labels of leases that are acquired on it: those of other
/// languages have no name that Rust knows.
pub fn name_thread(name: &str) {
    crate::host::owner_label::name_thread(name);
}

/// Says that not a thread acquires the lock but a task, of which the thread may run many: a task that waited for itself for
/// ever is refused as a thread is. No two tasks of a process have the same number.
pub fn by_task(request: LockRequest, task: u64) -> LockRequest {
    request.by_task(task)
}

/// The clocks of this machine: nanoseconds on the one that goes on while the machine is suspended, from an arbitrary
/// start, and milliseconds since 1970.
pub fn clocks() -> (u64, u64) {
    let now = Time::System.now();
    (now.monotonic.ns(), now.unix_ms)
}

/// From now on forks are noticed, as they are once a client was made: for what a host keeps in a [`PerProcess`].
///
/// # Errors
/// The C library has no memory left for its list of handlers.
pub fn notice_forks() -> std::io::Result<()> {
    fork::install()
}

/// The interval at which an interruption is noticed.
const SLICE: Duration = Duration::from_millis(50);

fn asking(mut interrupted: impl FnMut() -> bool) -> impl FnMut() -> Pause {
    move || if interrupted() { Pause::GiveUp } else { Pause::AskAfter(SLICE) }
}

fn given_up() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was interrupted")
}
