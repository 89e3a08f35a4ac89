//! Leader election: a candidate that acquires a lock again and again.

use std::task::{Poll, Waker};
use std::time::Duration;

use tracing::Level;

use crate::callbacks::{self, RESTS};
use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::host::clock;
use crate::host::fork;
use crate::host::sync::thread::{self, JoinHandle};
use crate::host::sync::{Arc, Condvar, Mutex};
use crate::locks::lease::Lease;
use crate::reports;

/// The longest that one attempt waits for the lock. After it, the candidate can tell a lock that is held from a store that does
/// not answer.
const CAMPAIGN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);

type OnStart = Box<dyn FnMut(&Arc<Lease>) + Send>;
type OnStop = Box<dyn FnMut(Option<&Error>) + Send>;

/// A request to stand for election; [`ElectionRequest::start`] begins to campaign.
#[must_use = "nobody stands for election until the request is started"]
pub struct ElectionRequest {
    client: Client,
    resource: String,
    ttl: Option<Duration>,
    owner: Option<String>,
    on_start: Option<OnStart>,
    on_stop: Option<OnStop>,
}

impl Client {
    /// Asks to lead: see [`ElectionRequest`].
    pub fn elect(&self, resource: impl Into<String>) -> ElectionRequest {
        ElectionRequest::new(self.by(Caller::Async), resource.into())
    }
}

impl ElectionRequest {
    pub(crate) fn new(client: Client, resource: String) -> Self {
        Self { client, resource, ttl: None, owner: None, on_start: None, on_stop: None }
    }

    /// See [`LockRequest::ttl`](crate::LockRequest::ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// See [`LockRequest::owner`](crate::LockRequest::owner).
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Called with the lease each time this candidate is elected, on the election's own thread. It should start the
    /// work and return; a term can only be ended in good time while it does. If it panics, `on_stop` is called, the term ends, and
    /// the candidate stands again after a pause of 1 s, which doubles up to a minute; an ERROR event and
    /// [`Election::last_error`] tell it.
    pub fn on_start(mut self, callback: impl FnMut(&Arc<Lease>) + Send + 'static) -> Self {
        self.on_start = Some(Box::new(callback));
        self
    }

    /// Called each time a term ends, on the election's own thread: with the reason when it was lost, without when this
    /// candidate resigned. The work must have stopped when it returns. If it panics, the lock is released all the same, and the
    /// candidate stands again after a pause.
    pub fn on_stop(mut self, callback: impl FnMut(Option<&Error>) + Send + 'static) -> Self {
        self.on_stop = Some(Box::new(callback));
        self
    }

    /// Begins to campaign, on a thread of its own, until the election is resigned or dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name or ttl out of bounds, [`ErrorKind::Closed`] after the client was closed,
    /// [`ErrorKind::Internal`] where no thread can be started.
    pub fn start(self) -> Result<Election, Error> {
        let driver = self.client.driver();
        driver.check_open()?;
        leasehold_core::Resource::new(&self.resource)?;
        if let Some(ttl) = self.ttl {
            leasehold_core::config::Ttl::new(ttl)?;
        }
        if let Some(owner) = &self.owner {
            leasehold_core::Owner::new(owner)?;
        }
        let shared = Arc::new(Shared::default());
        let (of_thread, generation) = (Arc::clone(&shared), fork::generation());
        let campaign = move || {
            let _over = MarkOver(&of_thread);
            self.campaign(&of_thread);
        };
        let thread = thread::Builder::new()
            .name("leasehold-election".to_owned())
            .spawn(campaign)
            .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
        Ok(Election { shared, thread: Some(thread), generation })
    }

    fn campaign(mut self, shared: &Shared) {
        let mut rests = RESTS;
        while !shared.is_resigned() && !self.client.driver().is_closing() {
            match self.campaign_once(shared) {
                Some(Ok(lease)) => match self.lead(Arc::new(lease), shared) {
                    Ok(()) => rests = RESTS,
                    Err(()) => self.rest(shared, rests.next()),
                },
                // Another candidate leads.
                Some(Err(error)) if error.kind() == ErrorKind::TimedOut => shared.end_term(None),
                Some(Err(error)) => {
                    shared.end_term(Some(error.clone()));
                    reports::queue(Level::WARN, move || {
                        tracing::warn!(target: "leasehold", error = %error, "the election could not be held; it is tried again");
                    });
                    shared.pause(PAUSE);
                }
                None => return,
            }
        }
    }

    /// Waits for the lock; `None` when the candidate resigned.
    fn campaign_once(&self, shared: &Shared) -> Option<Result<Lease, Error>> {
        // A bounded wait, so that a store that is down is noticed and reported.
        let mut request = self.client.lock(&self.resource).wait(CAMPAIGN);
        if let Some(ttl) = self.ttl {
            request = request.ttl(ttl);
        }
        if let Some(owner) = &self.owner {
            request = request.owner(owner);
        }
        let mut acquired = Box::pin(request.acquire());
        exec::block_on(std::future::poll_fn(|context| {
            if shared.poll_resigned(context.waker()) {
                return Poll::Ready(None);
            }
            acquired.as_mut().poll(context).map(Some)
        }))
    }

    /// Leaves the lock to the others for a while.
    fn rest(&self, shared: &Shared, rest: Duration) {
        let until = clock::monotonic().plus(rest);
        while !shared.is_resigned() && !self.client.driver().is_closing() {
            match until.since(clock::monotonic()) {
                Duration::ZERO => return,
                left => shared.pause(left.min(PAUSE)),
            }
        }
    }

    /// One term, from the grant to its end of whatever kind.
    ///
    /// # Errors
    /// A callback has failed, which is noted; the lock was given back.
    fn lead(&mut self, lease: Arc<Lease>, shared: &Shared) -> Result<(), ()> {
        shared.begin_term(&lease);
        let (on_start, on_stop) = (&mut self.on_start, &mut self.on_stop);
        let started = callbacks::run(&self.resource, "on_start", || {
            on_start.iter_mut().for_each(|on_start| on_start(&lease));
        });
        let is_started = started.is_ok();
        shared.note_failure(started.err().flatten());
        let mut ended = Box::pin(lease.ended());
        let end = is_started.then(|| {
            exec::block_on(std::future::poll_fn(|context| {
                if shared.poll_resigned(context.waker()) {
                    return Poll::Ready(None);
                }
                ended.as_mut().poll(context)
            }))
        });
        shared.end_term(None);
        let lost = || lease.check(Duration::ZERO).err().filter(|error| error.kind() == ErrorKind::Lost);
        let loss = end.flatten().or_else(lost);
        let stopped = callbacks::run(&self.resource, "on_stop", || {
            on_stop.iter_mut().for_each(|on_stop| on_stop(loss.as_ref()));
        });
        let is_stopped = stopped.is_ok();
        if is_started && !is_stopped {
            shared.note_failure(stopped.err().flatten());
        }
        if loss.is_none()
            && let Err(error) = exec::block_on(lease.release_by(Caller::Blocking))
            // A loss that the release has found is reported as one.
            && error.kind() == ErrorKind::StoreUnavailable
        {
            reports::queue(Level::WARN, move || {
                tracing::warn!(target: "leasehold", error = %error, "the term has ended, and its release is not confirmed");
            });
        }
        if !(is_started && is_stopped) {
            return Err(());
        }
        // After it resigned, a candidate lets others go first.
        if loss.is_none() {
            shared.pause(PAUSE);
        }
        Ok(())
    }
}

/// A candidacy that goes on until it is resigned or dropped, or the client is closed.
#[must_use = "dropping the election resigns"]
pub struct Election {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    generation: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    resigned: bool,
    /// The thread has nothing left to do.
    is_over: bool,
    term: Option<Arc<Lease>>,
    last_error: Option<Error>,
    /// The last callback has failed. It stands until `on_start` has returned in a later term.
    failure: Option<Error>,
    waker: Option<Waker>,
}

impl Election {
    /// The fencing token of the current term; `None` while another candidate leads, and from the moment in which the term's
    /// lease is over, also while `on_start` or `on_stop` is still running.
    pub fn token(&self) -> Option<u64> {
        let state = self.shared.state.lock();
        state.term.as_ref().filter(|lease| !lease.remaining().is_zero()).map(|lease| lease.token())
    }

    /// Why the last campaign failed, if it did: the store is down or refuses, or a callback has failed
    /// ([`ErrorKind::Callback`]).
    pub fn last_error(&self) -> Option<Error> {
        let state = self.shared.state.lock();
        state.failure.as_ref().or(state.last_error.as_ref()).cloned()
    }

    /// Stops campaigning; a current term ends, `on_stop` is called, and the lock is released. Returns when that is done,
    /// which takes as long as the callbacks take.
    ///
    /// # Errors
    /// [`ErrorKind::Callback`] if the last term has ended since a callback panicked.
    pub fn resign(mut self) -> Result<(), Error> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }

    /// The failure of a callback that stands: `on_start` has not returned in a later term.
    pub(crate) fn failure(&self) -> Option<Error> {
        // In a forked child the mutex may be locked forever, and the failure is the parent's.
        (self.generation == fork::generation()).then(|| self.shared.state.lock().failure.clone()).flatten()
    }

    fn end(&mut self) {
        // In a forked child there is no such thread, and the mutex may be locked forever.
        if self.generation != fork::generation() {
            std::mem::forget(self.thread.take());
            return;
        }
        self.shared.resign();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends that need not wait for the thread, or only in slices of time.
impl Election {
    pub(crate) fn is_over(&self) -> bool {
        self.shared.state.lock().is_over
    }

    /// As [`Election::resign`], without waiting for the end of the term.
    pub(crate) fn begin_to_resign(&self) {
        if self.generation == fork::generation() {
            self.shared.resign();
        }
    }

    /// As [`Election::resign`], but given up once `interrupted` answers `true`; asked each time a `slice` has passed.
    pub(crate) fn resign_until(&self, slice: Duration, mut interrupted: impl FnMut() -> bool) {
        self.begin_to_resign();
        if self.generation != fork::generation() {
            return;
        }
        if self.thread.as_ref().is_some_and(|thread| thread.thread().id() == thread::current().id()) {
            return;
        }
        while !self.shared.wait_until_over(slice) {
            if interrupted() {
                return;
            }
        }
    }

    /// Resigns, and leaves the end of the term to the election's own thread.
    pub(crate) fn dismiss(mut self) {
        // Dropping does the rest: in a forked child nothing, and elsewhere there is no thread left to wait for.
        std::mem::forget(self.thread.take().filter(|_| self.generation != fork::generation()));
    }
}

/// Marks the end of the thread, also when it panics.
struct MarkOver<'a>(&'a Shared);

impl Drop for MarkOver<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn is_resigned(&self) -> bool {
        self.state.lock().resigned
    }

    fn poll_resigned(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        state.waker = Some(waker.clone());
        state.resigned
    }

    fn resign(&self) {
        let mut state = self.state.lock();
        state.resigned = true;
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn begin_term(&self, lease: &Arc<Lease>) {
        let mut state = self.state.lock();
        state.term = Some(Arc::clone(lease));
        state.last_error = None;
    }

    fn end_term(&self, error: Option<Error>) {
        let mut state = self.state.lock();
        state.term = None;
        state.last_error = error;
    }

    fn note_failure(&self, failure: Option<Error>) {
        self.state.lock().failure = failure;
    }

    /// Waits at most so long; answers whether the election is over.
    fn wait_until_over(&self, most: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state.lock(), most, |state| !state.is_over);
        waited.is_over
    }

    fn pause(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.state.lock(), time, |state| !state.resigned));
    }
}
