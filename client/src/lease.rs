//! A held lock.

use std::future::{Future, poll_fn};
use std::time::Duration;

use leasehold_core::{LostReason, Nonce};
use tracing::Instrument;

use crate::client::Shared;
use crate::driver::{Caller, CallerRequests, LeaseState, Phase, PhaseWait};
use crate::error::{Error, ErrorKind, LockInfo};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// A held lock. It is renewed in the background until it is released, dropped or lost.
///
/// Dropping a lease ends it here at once and releases it in the background. A lost lease is never released: its record
/// runs out by itself, since the work may still be going on.
///
/// **A lease is no proof.** Between a check and the write that it guards any amount of time can pass. Only the resource
/// itself, refusing tokens older than it has seen, closes that gap: see [`fence`](crate::fence).
#[must_use = "dropping a lease releases the lock at once"]
pub struct Lease {
    shared: Arc<Shared>,
    state: Arc<LeaseState>,
    token: u64,
    released: AtomicBool,
    /// A transaction of the user's was given the mark that the work is done.
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
            #[cfg(feature = "postgres")]
            marks_in_transaction: AtomicBool::new(false),
        }
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
        self.state.remaining()
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

    /// Tells if the lease ended without having been released, or its release has found that it was lost.
    pub fn is_lost(&self) -> bool {
        self.remaining().is_zero() && (!self.released.load(Ordering::Relaxed) || self.state.loss().is_some())
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
        let state = Arc::clone(&self.state);
        async move {
            match ended(&state).await {
                Some(loss) => loss,
                None => std::future::pending().await,
            }
        }
    }

    /// Ready when less than a sixth of the ttl is left and no renewal has succeeded, or the lease is lost: the last
    /// moment for winding up. Never, once it was released.
    pub fn expiring(&self) -> impl Future<Output = ()> + Send + 'static {
        let state = Arc::clone(&self.state);
        async move {
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
    }

    /// Ready when the lease is over, with the reason unless its holder released it.
    pub(crate) fn ended(&self) -> impl Future<Output = Option<Error>> + Send + 'static {
        let state = Arc::clone(&self.state);
        async move { ended(&state).await }
    }

    /// Calls `callback` once if the lease is lost, on a thread kept for callbacks; at once if it was lost before. One that
    /// takes longer than 0.1 s holds up no other: up to 16 threads call callbacks then.
    ///
    /// A callback that owns the lease keeps it from ever being dropped: give it what it needs, and not the lease.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        if let Some(callback) = self.state.on_lost(Box::new(callback)) {
            self.shared.driver().call_back(callback);
        }
    }

    /// Calls `callback` once if [`Lease::expiring`] becomes ready, on a thread kept for callbacks.
    pub fn on_expiring(&self, callback: impl FnOnce() + Send + 'static) {
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
            return Err(self.loss());
        }
        if self.released.swap(true, Ordering::AcqRel) {
            return Err(self.not_owned());
        }
        let requests = self.shared.driver().release(&self.state, caller, true);
        self.await_release(requests).await
    }

    /// Writes the mark that the work of a run is done, and releases its lock.
    pub(crate) async fn finish_by(&self, caller: Caller) -> Result<(), Error> {
        let span = tracing::debug_span!(target: "leasehold", "run.finish", resource = self.resource());
        self.finish_once(caller).instrument(span).await
    }

    #[cfg(feature = "postgres")]
    async fn finish_once(&self, caller: Caller) -> Result<(), Error> {
        let finished = self.finish_in_store(caller).await;
        match finished {
            Err(error)
                if self.marks_in_transaction.load(Ordering::Relaxed)
                    && matches!(error.kind(), ErrorKind::Lost | ErrorKind::FinishUnconfirmed)
                    && !self.state.is_inherited() =>
            {
                crate::mark_in::confirm(&self.shared, self.resource(), self.token, error, caller).await
            }
            finished => finished,
        }
    }

    #[cfg(not(feature = "postgres"))]
    async fn finish_once(&self, caller: Caller) -> Result<(), Error> {
        self.finish_in_store(caller).await
    }

    /// See [`Run::mark_in`](crate::Run::mark_in).
    #[cfg(feature = "postgres")]
    pub(crate) fn mark_in(&self) -> Result<crate::MarkStatement, Error> {
        if self.shared.driver().is_inherited() || self.released.load(Ordering::Relaxed) {
            return Err(self.loss());
        }
        let statement = crate::mark_in::statement(&self.shared, &self.state, self.token)?;
        self.marks_in_transaction.store(true, Ordering::Relaxed);
        Ok(statement)
    }

    async fn finish_in_store(&self, caller: Caller) -> Result<(), Error> {
        if self.shared.driver().is_inherited() || self.remaining().is_zero() {
            return Err(self.loss());
        }
        if self.released.swap(true, Ordering::AcqRel) {
            return Err(self.not_owned());
        }
        let requests = self.shared.driver().finish(&self.state, caller).map_err(|error| {
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
            "the work was done, but no answer of the store says that its mark stands{}: it may be done again",
            why.unwrap_or_default()
        );
        Error::new(ErrorKind::FinishUnconfirmed, message).on(self.resource())
    }

    /// See [`ffi::end_after`](crate::ffi::end_after).
    pub(crate) fn end_after(&self, time: Duration) -> bool {
        self.shared.driver().end_at(&self.state, crate::clock::monotonic().plus(time))
    }

    /// See [`ffi::end_gone`](crate::ffi::end_gone).
    pub(crate) fn end_gone(&self) {
        self.state.mark_record_gone();
        self.end_after(Duration::ZERO);
    }

    /// Begins to release the lease, for callers that have several; [`Lease::released`] waits for it.
    pub(crate) fn begin_release(&self) -> Result<(), Error> {
        self.check(Duration::ZERO)?;
        if self.released.swap(true, Ordering::AcqRel) {
            return Err(self.not_owned());
        }
        self.shared.driver().release(&self.state, Caller::Background, true);
        Ok(())
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
            Phase::Released | Phase::Finished { confirmed: true } => Ok(()),
            Phase::Finished { confirmed: false } => Err(self.finish_unconfirmed()),
            Phase::Lost(_) | Phase::Closed => Err(self.loss()),
            Phase::Failed(failure) => Err(Error::failed(self.resource(), failure)),
            Phase::ReleaseOverdue | Phase::Releasing | Phase::Pending | Phase::Held { .. } => {
                let message =
                    "the release is not confirmed: it goes on in the background, and the record runs out by itself";
                Err(Error::new(ErrorKind::StoreUnavailable, message).on(self.resource()))
            }
        }
    }

    /// Why nothing is held any more.
    fn loss(&self) -> Error {
        self.state.loss().unwrap_or_else(|| {
            if self.released.load(Ordering::Relaxed) {
                return self.not_owned();
            }
            // The deadline has passed, and the event that reports it is still to come.
            Error::lost(self.resource(), &LostReason::Expired, self.state.renew_fault().as_ref())
        })
    }

    pub(crate) fn not_owned(&self) -> Error {
        crate::ffi::already_released(self.resource())
    }
}

/// Ready when the lease is over.
async fn ended(state: &Arc<LeaseState>) -> Option<Error> {
    if state.is_inherited() {
        return state.loss();
    }
    let mut wait = PhaseWait::on(state);
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
