//! Leader election: a candidate that acquires a lock again and again.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::callbacks::{self, Ending, RESTS};
use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::exec::Alarm;
use crate::groups::term::{self, Ends, Running, Term};
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::locks::lease::Lease;

/// The longest that one attempt waits for the lock. After it, the candidate can tell a lock that is held from a store that does
/// not answer.
const CAMPAIGN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);

type OnStart = Box<dyn FnMut(&Arc<Lease>) -> Ending + Send>;
type OnStop = Box<dyn FnMut(Option<&Error>) -> Ending + Send>;

/// A request to stand for election; [`ElectionRequest::start`] begins to campaign.
#[must_use = "nobody stands for election until the request is started"]
pub struct ElectionRequest {
    candidate: Candidate,
    callbacks: Callbacks,
}

/// One who stands for election.
struct Candidate {
    client: Client,
    resource: String,
    ttl: Option<Duration>,
    owner: Option<String>,
}

/// The code of a user's.
#[derive(Default)]
struct Callbacks {
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
        let candidate = Candidate { client, resource, ttl: None, owner: None };
        Self { candidate, callbacks: Callbacks::default() }
    }

    /// See [`LockRequest::ttl`](crate::LockRequest::ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.candidate.ttl = Some(ttl);
        self
    }

    /// See [`LockRequest::owner`](crate::LockRequest::owner).
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.candidate.owner = Some(owner.into());
        self
    }

    /// Called with the lease each time this candidate is elected, on the election's own thread. It should start the
    /// work and return; a term can only be ended in good time while it does. If it panics, `on_stop` is called, the term ends, and
    /// the candidate stands again after a pause of 1 s, which doubles up to a minute; an ERROR event and
    /// [`Election::last_error`] tell it.
    pub fn on_start(self, mut callback: impl FnMut(&Arc<Lease>) + Send + 'static) -> Self {
        self.started(move |lease| {
            callback(lease);
            callbacks::returned()
        })
    }

    /// Called each time a term ends, on the election's own thread: with the reason when it was lost, without when this
    /// candidate resigned. The work must have stopped when it returns. If it panics, the lock is released all the same, and the
    /// candidate stands again after a pause.
    pub fn on_stop(self, mut callback: impl FnMut(Option<&Error>) + Send + 'static) -> Self {
        self.stopped(move |loss| {
            callback(loss);
            callbacks::returned()
        })
    }

    pub(crate) fn started(mut self, callback: impl FnMut(&Arc<Lease>) -> Ending + Send + 'static) -> Self {
        self.callbacks.on_start = Some(Box::new(callback));
        self
    }

    pub(crate) fn stopped(mut self, callback: impl FnMut(Option<&Error>) -> Ending + Send + 'static) -> Self {
        self.callbacks.on_stop = Some(Box::new(callback));
        self
    }

    /// Begins to campaign, on a thread of its own, until the election is resigned or dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name or ttl out of bounds, [`ErrorKind::Closed`] after the client was closed,
    /// [`ErrorKind::Internal`] where no thread can be started.
    pub fn start(self) -> Result<Election, Error> {
        let Self { candidate, callbacks } = self;
        candidate.client.driver().check_open()?;
        leasehold_core::Resource::new(&candidate.resource)?;
        if let Some(ttl) = candidate.ttl {
            leasehold_core::config::Ttl::new(ttl)?;
        }
        if let Some(owner) = &candidate.owner {
            leasehold_core::Owner::new(owner)?;
        }
        let time = candidate.client.time().clone();
        let shared = Arc::new(Shared::new(time.clone()));
        let of_task = Arc::clone(&shared);
        let campaign = move |alarm| async move { candidate.campaign(&Mutex::new(callbacks), &of_task, alarm).await };
        let running = Running::start(&time, "leasehold-election", campaign)?;
        Ok(Election { shared, running })
    }
}

impl Candidate {
    async fn campaign(self, callbacks: &Mutex<Callbacks>, shared: &Shared, alarm: Alarm) {
        let mut rests = RESTS;
        while !shared.is_resigned() && !self.client.driver().is_closing() {
            match self.campaign_once(shared).await {
                Some(Ok(lease)) => {
                    let lease = Arc::new(lease);
                    shared.begin_term(&lease);
                    let ended = term::hold(&mut Leading { lease, callbacks, shared }).await;
                    if ended.has_failed {
                        self.rest(shared, &alarm, rests.next()).await;
                        continue;
                    }
                    rests = RESTS;
                    // After it resigned, a candidate lets others go first.
                    if !ended.is_lost {
                        shared.pause(&alarm, PAUSE).await;
                    }
                }
                // Another candidate leads.
                Some(Err(error)) if error.kind() == ErrorKind::TimedOut => shared.end_term(None),
                Some(Err(error)) => {
                    shared.end_term(Some(error.clone()));
                    term::report("the election could not be held; it is tried again", error);
                    shared.pause(&alarm, PAUSE).await;
                }
                None => return,
            }
        }
    }

    /// Waits for the lock; `None` when the candidate resigned.
    async fn campaign_once(&self, shared: &Shared) -> Option<Result<Lease, Error>> {
        // A bounded wait, so that a store that is down is noticed and reported.
        let mut request = self.client.lock(&self.resource).wait(CAMPAIGN);
        if let Some(ttl) = self.ttl {
            request = request.ttl(ttl);
        }
        if let Some(owner) = &self.owner {
            request = request.owner(owner);
        }
        let mut acquired = Box::pin(request.acquire());
        poll_fn(|context| {
            if shared.poll_resigned(context.waker()) {
                return Poll::Ready(None);
            }
            acquired.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Leaves the lock to the others for a while.
    async fn rest(&self, shared: &Shared, alarm: &Alarm, rest: Duration) {
        let until = self.client.time().monotonic().plus(rest);
        while !shared.is_resigned() && !self.client.driver().is_closing() {
            match until.since(self.client.time().monotonic()) {
                Duration::ZERO => return,
                left => shared.pause(alarm, left.min(PAUSE)).await,
            }
        }
    }
}

/// A candidate that was elected.
struct Leading<'a> {
    lease: Arc<Lease>,
    /// Locked only so that the task may move to another thread; nobody else asks for them.
    callbacks: &'a Mutex<Callbacks>,
    shared: &'a Shared,
}

impl Term for Leading<'_> {
    const CALLBACKS: (&'static str, &'static str) = ("on_start", "on_stop");
    const UNCONFIRMED: &'static str = "the term has ended, and its release is not confirmed";

    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn start(&mut self) -> Ending {
        self.callbacks.lock().on_start.as_mut().map_or_else(callbacks::returned, |on_start| on_start(&self.lease))
    }

    fn stop(&mut self, loss: Option<&Error>) -> Ending {
        self.callbacks.lock().on_stop.as_mut().map_or_else(callbacks::returned, |on_stop| on_stop(loss))
    }

    fn poll_leaving(&self, context: &Context<'_>) -> bool {
        self.shared.poll_resigned(context.waker())
    }

    fn started(&self, started: &Result<(), Option<Error>>) {
        self.shared.note_failure(started.as_ref().err().cloned().flatten());
    }

    fn ending(&self) {
        self.shared.end_term(None);
    }

    fn stopped(&self, failed: &Result<(), Option<Error>>) {
        if let Err(failure) = failed {
            self.shared.note_failure(failure.clone());
        }
    }
}

/// A candidacy that goes on until it is resigned or dropped, or the client is closed.
#[must_use = "dropping the election resigns"]
pub struct Election {
    shared: Arc<Shared>,
    running: Running,
}

struct Shared {
    state: Mutex<State>,
    time: Time,
}

#[derive(Default)]
struct State {
    resigned: bool,
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
}

impl Drop for Election {
    fn drop(&mut self) {
        self.end();
    }
}

impl Ends for Election {
    fn running(&self) -> &Running {
        &self.running
    }

    fn running_mut(&mut self) -> &mut Running {
        &mut self.running
    }

    fn ask_to_end(&self) {
        self.shared.resign();
    }

    fn is_called_back(&self) -> bool {
        self.running.is_here()
    }

    fn noted_failure(&self) -> Option<Error> {
        self.shared.state.lock().failure.clone()
    }
}

impl Shared {
    fn new(time: Time) -> Self {
        Self { state: Mutex::default(), time }
    }

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

    /// Waits for so long, unless the candidate resigns.
    async fn pause(&self, alarm: &Alarm, time: Duration) {
        let until = self.time.monotonic().plus(time);
        poll_fn(|context| if self.poll_resigned(context.waker()) { Poll::Ready(()) } else { alarm.poll(until) }).await;
    }
}
