//! A held lock.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use leasehold_core::{LostReason, Nonce, RunResult};
use tracing::Instrument;

use crate::callbacks;
use crate::client::{Client, Shared};
use crate::driver::{Caller, CallerRequests, LeaseState, Phase, PhaseWait};
use crate::error::{Error, ErrorKind, LockInfo};
use crate::host::sync::atomic::{AtomicBool, Ordering};
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::runs::attempts::Counting;
use crate::runs::result::Given;

/// A held lock. It is renewed in the background until it is released, dropped or lost.
///
/// Dropping a lease ends it here at once and releases it in the background. A lost lease is never released: its record
/// runs out by itself, since the work may still be going on.
///
/// **A lease is no proof.** Between a check and the write that it guards any amount of time can pass. Only the resource
/// itself, refusing tokens older than it has seen, closes that gap: see [`fence`](crate::fence).
#[must_use = "dropping a lease releases the lock at once: write `let _lease = `, since `let _ = ` drops it too"]
pub struct Lease {
    shared: Arc<Shared>,
    state: Arc<LeaseState>,
    token: u64,
    released: AtomicBool,
    /// Leases that were taken together with this one: it is valid only while all of them are, and they end with it.
    others: Vec<Lease>,
    /// The attempts at its work, where they are counted.
    counting: Option<Box<Counting>>,
    /// It is done again by hand, so earlier attempts count no more once it is done.
    forgets_attempts: bool,
    /// A transaction of the user's was given the completion that the work is done.
    #[cfg(feature = "postgres")]
    marks_in_transaction: AtomicBool,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, state: Arc<LeaseState>, token: u64) -> Self {
        Self {
            shared,
            state,
            token,
            released: AtomicBool::new(false),
            others: Vec::new(),
            counting: None,
            forgets_attempts: false,
            #[cfg(feature = "postgres")]
            marks_in_transaction: AtomicBool::new(false),
        }
    }

    pub(crate) fn with_token(mut self, token: u64) -> Self {
        self.token = token;
        self
    }

    pub(crate) fn with_others(mut self, others: Vec<Self>) -> Self {
        self.others = others;
        self
    }

    pub(crate) fn with_counting(mut self, counting: Counting) -> Self {
        self.counting = Some(Box::new(counting));
        self
    }

    pub(crate) fn that_forgets_attempts(mut self) -> Self {
        self.forgets_attempts = true;
        self
    }

    pub(crate) fn counting(&self) -> Option<&Counting> {
        self.counting.as_deref()
    }

    /// The fencing token: grows with every grant of the resource, below 2^53.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The name of the lock.
    pub fn resource(&self) -> &str {
        self.state.resource().as_str()
    }

    /// The label that others see.
    pub fn owner(&self) -> &str {
        self.state.owner().as_str()
    }

    /// How long the lease can still be believed in if no renewal succeeds; zero once it is lost or released. Costs a
    /// read of the clock, and never waits.
    pub fn remaining(&self) -> Duration {
        self.others.iter().map(Self::remaining).fold(self.state.remaining(), Duration::min)
    }

    /// How long nobody else can have the lock, for work that is ending: as [`Lease::remaining`], but after a
    /// [revoke](crate::Client::revoke), which ends the lease at once, what was left then. Zero after any other loss, and after a
    /// release.
    pub fn protected_for(&self) -> Duration {
        self.others.iter().map(Self::protected_for).fold(self.state.protected_for(), Duration::min)
    }

    /// Fails unless at least `min` of validity is left: to be called before a step that takes that long.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`]; the lease may go on, if it was only too short for `min`. [`ErrorKind::NotOwned`] after a
    /// release.
    pub fn check(&self, min: Duration) -> Result<(), Error> {
        let remaining = self.remaining();
        if !remaining.is_zero() && remaining >= min {
            return Ok(());
        }
        if remaining.is_zero() {
            return Err(self.loss());
        }
        let message = format!(
            "only {:.3} s of validity are left, and {:.3} s were asked for: renewals are late{}",
            remaining.as_secs_f64(),
            min.as_secs_f64(),
            self.state.renew_fault().map(|fault| format!(" ({fault})")).unwrap_or_default()
        );
        Err(Error::new(ErrorKind::Lost, message).on(self.resource()))
    }

    /// Why the last renewal failed, if it did.
    pub(crate) fn renewal_fault(&self) -> Option<leasehold_core::op::Fault> {
        self.state.renew_fault().or_else(|| self.others.iter().find_map(Self::renewal_fault))
    }

    /// Tells if the lease ended without having been released, or its release has found that it was lost.
    pub fn is_lost(&self) -> bool {
        let is_lost =
            self.state.remaining().is_zero() && (!self.released.load(Ordering::Relaxed) || self.state.loss().is_some());
        is_lost || self.others.iter().any(Self::is_lost)
    }

    /// Its own state, and those of the leases that it is held with.
    fn states(&self) -> (Arc<LeaseState>, Vec<Arc<LeaseState>>) {
        (Arc::clone(&self.state), self.others.iter().map(|other| Arc::clone(&other.state)).collect())
    }

    /// The attempt by which it is held; `None` once it is over.
    pub(crate) fn nonce(&self) -> Option<Nonce> {
        self.shared.driver().nonce(&self.state)
    }

    /// Tells if the holder that a store shows is this lease, as long as it is held.
    pub(crate) fn is_shown_by(&self, info: &LockInfo) -> bool {
        info.nonce.is_some() && info.nonce == self.nonce()
    }

    /// Ready when the lease is lost, with the reason; never, once it was released.
    pub fn lost(&self) -> impl Future<Output = Error> + Send + 'static {
        let ended = self.ended();
        async move {
            match ended.await {
                Some(loss) => loss,
                None => std::future::pending().await,
            }
        }
    }

    /// Ready when less than a sixth of the ttl is left and no renewal has succeeded, or the lease is lost: the last
    /// moment for winding up. Never, once it was released.
    pub fn expiring(&self) -> impl Future<Output = ()> + Send + 'static {
        first_of(self.states(), expiring)
    }

    /// Ready when the lease is over, with the reason unless its holder released it.
    pub(crate) fn ended(&self) -> impl Future<Output = Option<Error>> + Send + 'static {
        first_of(self.states(), ended)
    }

    /// Calls `callback` once if the lease is lost, on a thread kept for callbacks; at once if it was lost before. One that
    /// takes longer than 0.1 s holds up no other: up to 16 threads call callbacks then.
    ///
    /// A callback that owns the lease keeps it from ever being dropped: give it what it needs, and not the lease.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        if self.others.is_empty() {
            return self.call_on_loss(callback);
        }
        let once = Arc::new(Mutex::new(Some(callback)));
        for lease in self.others.iter().chain([self]) {
            let once = Arc::clone(&once);
            lease.call_on_loss(move |error| {
                let callback = once.lock().take();
                callback.into_iter().for_each(|callback| callback(error.clone()));
            });
        }
    }

    fn call_on_loss(&self, callback: impl FnOnce(Error) + Send + 'static) {
        let resource = self.resource().to_owned();
        let callback = move |error| drop(callbacks::run(&resource, "on_lost", || callback(error)));
        if let Some(callback) = self.state.on_lost(Box::new(callback)) {
            self.shared.driver().call_back(callback);
        }
    }

    /// Calls `callback` once if [`Lease::expiring`] becomes ready, on a thread kept for callbacks.
    pub fn on_expiring(&self, callback: impl FnOnce() + Send + 'static) {
        if self.others.is_empty() {
            return self.call_on_danger(callback);
        }
        let once = Arc::new(Mutex::new(Some(callback)));
        for lease in self.others.iter().chain([self]) {
            let once = Arc::clone(&once);
            lease.call_on_danger(move || {
                let callback = once.lock().take();
                callback.into_iter().for_each(|callback| callback());
            });
        }
    }

    fn call_on_danger(&self, callback: impl FnOnce() + Send + 'static) {
        let resource = self.resource().to_owned();
        let callback = move || drop(callbacks::run(&resource, "on_expiring", callback));
        if let Some(callback) = self.state.on_expiring(Box::new(callback)) {
            self.shared.driver().call_back(callback);
        }
    }

    /// Releases the lock. The lease ends here at once; the store's confirmation is awaited for up to 2 s.
    ///
    /// Dropping the future does not stop the release.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if the lease was lost before, or if the store shows that it was lost: its lock was
    /// broken, or its record deleted. [`ErrorKind::NotOwned`] if it was released before,
    /// [`ErrorKind::StoreUnavailable`] if the store has not confirmed: the release goes on in the background, and the
    /// record runs out by itself at the latest.
    pub async fn release(&self) -> Result<(), Error> {
        self.release_by(Caller::Async).await
    }

    pub(crate) async fn release_by(&self, caller: Caller) -> Result<(), Error> {
        let span = tracing::debug_span!(target: "leasehold", "lock.release", resource = self.resource());
        self.release_once(caller).instrument(span).await
    }

    async fn release_once(&self, caller: Caller) -> Result<(), Error> {
        if self.shared.driver().is_inherited() {
            return Err(self.loss());
        }
        if self.remaining().is_zero() {
            let loss = self.loss();
            // Those that are not lost serve nobody any more.
            self.others.iter().chain([self]).for_each(|lease| drop(lease.let_go(Caller::Background)));
            return Err(loss);
        }
        if self.released.load(Ordering::Acquire) {
            return Err(self.not_owned());
        }
        // All releases are begun before the first one is awaited.
        let begun: Vec<_> = self.others.iter().map(|other| other.let_go(Caller::Background)).collect();
        let mut first = match self.let_go(caller) {
            Ok(requests) => self.await_release(requests).await,
            Err(error) => Err(error),
        };
        for (other, requests) in self.others.iter().zip(begun) {
            first = first.and(match requests {
                Ok(requests) => other.await_release(requests).await,
                Err(error) => Err(error),
            });
        }
        first
    }

    /// Begins to release this lease alone.
    fn let_go(&self, caller: Caller) -> Result<CallerRequests, Error> {
        if self.state.remaining().is_zero() {
            self.let_go_of_revoked();
            return Err(self.loss());
        }
        if self.released.swap(true, Ordering::AcqRel) {
            return Err(self.not_owned());
        }
        Ok(self.shared.driver().release(&self.state, caller, true))
    }

    /// The work has ended, so a record that was revoked protects nothing any more.
    fn let_go_of_revoked(&self) {
        if self.state.take_revoked() {
            self.shared.driver().release(&self.state, Caller::Background, false);
        }
    }

    /// Writes the completion that the work of a run is done, and releases its lock. A result that cannot be kept is an error once
    /// the completion stands: the work is done.
    pub(crate) async fn finish_by(&self, given: Given, caller: Caller) -> Result<(), Error> {
        let span = tracing::debug_span!(target: "leasehold", "run.finish", resource = self.resource());
        let (result, unfit) = match given.transpose() {
            Ok(result) => (result, None),
            Err(why) => (None, Some(why)),
        };
        self.finish_once(result, caller).instrument(span).await?;
        if self.forgets_attempts {
            // The work is done, whatever becomes of them.
            let client = Client { shared: Arc::clone(&self.shared), caller };
            let _ = Box::pin(client.forget_attempts(self.resource())).await;
        }
        unfit.map_or(Ok(()), |why| Err(self.result_not_kept(&why)))
    }

    #[cfg(feature = "postgres")]
    async fn finish_once(&self, result: Option<RunResult>, caller: Caller) -> Result<(), Error> {
        let finished = self.finish_in_store(result.clone(), caller).await;
        let finished = match finished {
            Err(error)
                if self.marks_in_transaction.load(Ordering::Relaxed)
                    && matches!(error.kind(), ErrorKind::Lost | ErrorKind::FinishUnconfirmed)
                    && !self.state.is_inherited() =>
            {
                crate::runs::completion_in::confirm(&self.shared, self.resource(), self.token, error, caller).await
            }
            finished => finished,
        };
        match result.filter(|_| finished.is_ok() && self.marks_in_transaction.load(Ordering::Relaxed)) {
            Some(result) => crate::runs::completion_in::confirm_result(&self.shared, self.resource(), &result, caller)
                .await?
                .map_or(Ok(()), |why| Err(self.result_not_kept(why))),
            None => finished,
        }
    }

    #[cfg(not(feature = "postgres"))]
    async fn finish_once(&self, result: Option<RunResult>, caller: Caller) -> Result<(), Error> {
        self.finish_in_store(result, caller).await
    }

    /// See [`Run::completion_in`](crate::Run::completion_in).
    #[cfg(feature = "postgres")]
    pub(crate) fn completion_in(&self, result: Option<&RunResult>) -> Result<crate::CompletionStatement, Error> {
        if self.shared.driver().is_inherited() || self.released.load(Ordering::Relaxed) {
            return Err(self.loss());
        }
        let statement = crate::runs::completion_in::statement(&self.shared, &self.state, self.token, result)?;
        self.marks_in_transaction.store(true, Ordering::Relaxed);
        Ok(statement)
    }

    async fn finish_in_store(&self, result: Option<RunResult>, caller: Caller) -> Result<(), Error> {
        if self.shared.driver().is_inherited() || self.remaining().is_zero() {
            self.let_go_of_revoked();
            return Err(self.loss());
        }
        if self.released.swap(true, Ordering::AcqRel) {
            return Err(self.not_owned());
        }
        let requests = self.shared.driver().finish(&self.state, result, caller).map_err(|error| {
            let is_over = error == leasehold_core::Error::UnknownLock;
            if is_over { self.loss() } else { Error::from(error).on(self.resource()) }
        })?;
        self.await_release(requests).await
    }

    fn finish_unconfirmed(&self) -> Error {
        let why = self.state.finish_fault().map(|(node, why)| match self.shared.quorum() {
            Some(nodes) => format!(" ({}: {why})", nodes.name(node.index())),
            None => format!(" ({why})"),
        });
        let message = format!(
            "the work was done, but the store did not confirm its completion{}: it may be done again",
            why.unwrap_or_default()
        );
        Error::new(ErrorKind::FinishUnconfirmed, message).on(self.resource())
    }

    fn result_not_kept(&self, why: &str) -> Error {
        let message =
            format!("the work is done, but its result was not kept: {why}; those who come later may find none");
        Error::new(ErrorKind::ResultNotKept, message).on(self.resource())
    }

    /// The time by which its client lives.
    pub(crate) fn time(&self) -> &Time {
        self.state.time()
    }

    /// See [`ffi::end_after`](crate::ffi::end_after).
    pub(crate) fn end_after(&self, time: Duration) -> bool {
        self.shared.driver().end_at(&self.state, self.state.time().monotonic().plus(time))
    }

    /// See [`ffi::end_gone`](crate::ffi::end_gone).
    pub(crate) fn end_gone(&self) {
        self.state.mark_record_gone();
        self.end_after(Duration::ZERO);
    }

    /// Begins to release the lease, for callers that have several; [`Lease::released`] waits for it.
    pub(crate) fn begin_release(&self) -> Result<(), Error> {
        self.let_go(Caller::Background).map(drop)
    }

    pub(crate) async fn released(&self) -> Result<(), Error> {
        self.await_release(CallerRequests::default()).await
    }

    async fn await_release(&self, mut requests: CallerRequests) -> Result<(), Error> {
        let mut wait = PhaseWait::on(&self.state);
        let end = poll_fn(|context| {
            wait.pause();
            requests.poll(context);
            wait.poll(context, |phase, _| match phase {
                Phase::Pending | Phase::Held { .. } | Phase::Releasing => None,
                Phase::Released
                | Phase::Finished { .. }
                | Phase::ReleaseOverdue
                | Phase::Lost(_)
                | Phase::Closed
                | Phase::Failed(_) => Some(phase.clone()),
            })
        })
        .await;
        match end {
            // Unconfirmed means that an answer was lost, or that the record has run out: the lock is free either way.
            Phase::Released | Phase::Finished { confirmed: true, result_dropped: false } => Ok(()),
            Phase::Finished { confirmed: true, result_dropped: true } => {
                let why = self.state.finish_fault().map(|(_, why)| why);
                Err(self.result_not_kept(why.as_deref().unwrap_or("the store had no room for it")))
            }
            Phase::Finished { confirmed: false, .. } => Err(self.finish_unconfirmed()),
            Phase::Lost(_) | Phase::Closed => Err(self.loss()),
            Phase::Failed(failure) => Err(Error::failed(self.resource(), failure, &[])),
            Phase::ReleaseOverdue | Phase::Releasing | Phase::Pending | Phase::Held { .. } => {
                let message = "the release is not confirmed: it is tried again in the background, and otherwise the \
                               lock expires after its ttl";
                Err(Error::new(ErrorKind::StoreUnavailable, message).on(self.resource()))
            }
        }
    }

    /// Why nothing is held any more.
    fn loss(&self) -> Error {
        if let Some(other) = self.others.iter().find(|other| other.is_lost()) {
            return self.state.loss().unwrap_or_else(|| other.loss());
        }
        self.state.loss().unwrap_or_else(|| {
            if self.released.load(Ordering::Relaxed) {
                return self.not_owned();
            }
            // The deadline has passed, and the event that reports it is still to come.
            Error::lost(self.resource(), &LostReason::Expired, self.state.renew_fault().as_ref())
        })
    }

    pub(crate) fn not_owned(&self) -> Error {
        Error::already_released(self.resource())
    }
}

/// Ready with the first of them that is.
async fn first_of<T, F: Future<Output = T>>(
    states: (Arc<LeaseState>, Vec<Arc<LeaseState>>),
    wait: fn(Arc<LeaseState>) -> F,
) -> T {
    let mut own = pin!(wait(states.0));
    let mut others: Vec<_> = states.1.into_iter().map(|state| Box::pin(wait(state))).collect();
    poll_fn(|context| match own.as_mut().poll(context) {
        Poll::Pending => {
            let mut polled = others.iter_mut().map(|other| other.as_mut().poll(context));
            polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
        }
        ready => ready,
    })
    .await
}

/// Ready when the lease is over.
async fn ended(state: Arc<LeaseState>) -> Option<Error> {
    if state.is_inherited() {
        return state.loss();
    }
    let mut wait = PhaseWait::on(&state);
    poll_fn(|context| {
        wait.poll(context, |phase, _| match phase {
            Phase::Pending | Phase::Held { .. } => None,
            Phase::Releasing
            | Phase::ReleaseOverdue
            | Phase::Released
            | Phase::Finished { .. }
            | Phase::Failed(_)
            | Phase::Lost(_)
            | Phase::Closed => Some(()),
        })
    })
    .await;
    state.loss()
}

/// Ready when the lease is in danger.
async fn expiring(state: Arc<LeaseState>) {
    if state.is_inherited() {
        return;
    }
    let mut wait = PhaseWait::on(&state);
    poll_fn(|context| {
        wait.poll(context, |phase, is_expiring| match phase {
            Phase::Held { .. } if is_expiring => Some(()),
            Phase::Lost(_) | Phase::Closed => Some(()),
            Phase::Pending
            | Phase::Held { .. }
            | Phase::Releasing
            | Phase::ReleaseOverdue
            | Phase::Released
            | Phase::Finished { .. }
            | Phase::Failed(_) => None,
        })
    })
    .await;
}

impl Drop for Lease {
    fn drop(&mut self) {
        let driver = self.shared.driver();
        if !self.released.swap(true, Ordering::AcqRel) && !driver.is_inherited() {
            driver.release(&self.state, Caller::Background, false);
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("resource", &self.resource())
            .field("token", &self.token)
            .field("owner", &self.owner())
            .field("remaining", &self.remaining())
            .finish()
    }
}
