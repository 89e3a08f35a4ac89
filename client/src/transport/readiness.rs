//! Tracks if a server behind HTTP is known to answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use tokio::sync::watch;
use tracing::Level;

use super::Answer;
use super::deadline::until;
use super::pauses::{LastAttempt, UnderWay};
use crate::error::{Error, ErrorKind};
use crate::host::sync::Mutex;
use crate::reports;

/// The time limit for the first answer of a server, connecting included.
pub(super) use super::pauses::CONNECT_PATIENCE;

/// The reason why there is no server to ask.
#[derive(Clone, Debug)]
pub(super) enum NoServer {
    /// It may work later.
    Fault(Fault),
    /// The server was reached and refuses.
    Refused(Refusal),
}

/// The result of a greeting.
pub(super) type Greeted = Result<(), NoServer>;

/// The first request, and the first after a failure, waits until the server has answered a harmless one. This may take
/// longer than the request's deadline, so that a distant server is reached even with short deadlines. Until the server
/// has answered, no request has left.
#[derive(Default)]
pub(super) struct Readiness {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    met: bool,
    greeting: Option<UnderWay<Greeted>>,
    last: LastAttempt<NoServer>,
}

impl Readiness {
    pub(super) fn is_ready(&self) -> bool {
        self.state.lock().met
    }

    /// The next request waits until the server has answered again.
    pub(super) fn reset(&self) {
        self.state.lock().met = false;
    }

    /// Waits until the server has answered; calls `greet` unless a greeting is under way that has lasted for less than `patience`.
    ///
    /// # Errors
    /// The server does not answer, refuses us, or is of another kind.
    pub(super) async fn wait<G: Future<Output = Greeted> + Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        greet: impl FnOnce() -> G,
    ) -> Greeted {
        let mut greeting = match self.begin(patience, greet) {
            Ok(greeting) => greeting,
            Err(met) => return met,
        };
        let gone = || Err(NoServer::Fault(Fault::of(FaultKind::Cancelled)));
        let met = greeting.wait_for(Option::is_some).await;
        met.ok().and_then(|met| met.clone()).unwrap_or_else(gone)
    }

    /// The greeting that is under way, or a new one.
    ///
    /// # Errors
    /// The result, if it is known already.
    pub(super) fn begin<G: Future<Output = Greeted> + Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        greet: impl FnOnce() -> G,
    ) -> Result<watch::Receiver<Option<Greeted>>, Greeted> {
        let mut state = self.state.lock();
        if state.met {
            return Err(Ok(()));
        }
        if let Some(why) = state.last.forbids_another() {
            return Err(Err(why));
        }
        match state.greeting.as_ref().and_then(|greeting| greeting.awaited(patience)) {
            Some(greeting) => Ok(greeting),
            None => {
                let (done, greeting) = watch::channel(None);
                state.greeting = Some(UnderWay::since_now(greeting.clone()));
                let (readiness, greet) = (Arc::clone(self), greet());
                // In a task of its own, so that it gets its time even if the request has little left.
                let own = greeting.clone();
                tokio::spawn(async move {
                    let met = greet.await;
                    readiness.ended(&own, &met);
                    let _ = done.send(Some(met));
                });
                Ok(greeting)
            }
        }
    }

    /// Of several greetings at the same time the first success counts, and only the failure of the last one.
    fn ended(&self, own: &watch::Receiver<Option<Greeted>>, met: &Greeted) {
        let mut state = self.state.lock();
        let is_last = state.greeting.take_if(|greeting| greeting.is(own)).is_some();
        if met.is_err() && (!is_last || state.met) {
            return;
        }
        state.met = met.is_ok();
        match met {
            Ok(()) => state.last.succeeded(),
            Err(why) => state.last.failed(why.clone()),
        }
    }
}

impl From<Outcome> for NoServer {
    /// The meaning of a question without its answer.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::NotApplied(refusal) => Self::Refused(refusal),
            Outcome::Unknown(fault) => Self::Fault(fault),
            Outcome::Applied(_) => Self::Fault(Fault::of(FaultKind::Protocol)),
        }
    }
}

impl NoServer {
    /// The meaning of a greeting without its answer: what passes is no refusal.
    #[cfg(any(feature = "etcd", feature = "http", feature = "objects"))]
    pub(super) fn ungreeted(outcome: Outcome) -> Self {
        match outcome {
            Outcome::NotApplied(Refusal::Unavailable(fault)) => Self::Fault(fault),
            outcome @ (Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_)) => Self::from(outcome),
        }
    }

    /// The error of a call that asked this store.
    pub(super) fn error(&self, store: &dyn fmt::Display) -> Error {
        let kind = match self {
            // If another kind of server answers, waiting does not help.
            Self::Fault(fault) if fault.kind == FaultKind::Protocol => ErrorKind::StoreRefused,
            Self::Refused(Refusal::Denied(_) | Refusal::NeedsCredentials(_)) => ErrorKind::StoreRefused,
            Self::Fault(_) | Self::Refused(_) => ErrorKind::StoreUnavailable,
        };
        Error::new(kind, super::of(store, self))
    }

    /// Tells people who look for it that a server was not reached. `store` shows its name, later and on another thread.
    pub(super) fn report(&self, store: impl fmt::Display + Send + 'static) {
        let why = self.clone();
        reports::queue(Level::DEBUG, move || {
            tracing::debug!(target: "leasehold", store = %store, why = %why, "no answer");
        });
    }

    /// The answer to a request of which nothing has left.
    pub(super) fn answer(self, request: &Transmit) -> Answer {
        match self {
            Self::Fault(fault) => Err(TransportFault::NotSent(fault)),
            Self::Refused(refusal) => Ok(all(request, &Outcome::NotApplied(refusal))),
        }
    }

    /// The same, before the request itself was sent.
    #[cfg(any(feature = "dynamodb", feature = "http"))]
    pub(super) fn before(self) -> Self {
        match self {
            Self::Fault(fault) => Self::Refused(Refusal::Unavailable(fault)),
            Self::Refused(refusal) => Self::Refused(refusal),
        }
    }

    /// The outcome of a request that was made to this server; a fault may have come after it had left.
    #[cfg(any(feature = "dynamodb", feature = "http", feature = "postgres"))]
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Fault(fault) => Outcome::Unknown(fault),
            Self::Refused(refusal) => Outcome::NotApplied(refusal),
        }
    }

    fn timeout() -> Self {
        Self::Fault(Fault::of(FaultKind::Timeout))
    }
}

/// The same outcome for each operation.
pub(super) fn all(request: &Transmit, outcome: &Outcome) -> Vec<Outcome> {
    request.ops.iter().map(|_| outcome.clone()).collect()
}

/// Gives up at the deadline.
///
/// # Errors
/// The error of `asked`, or a timeout.
pub(super) async fn in_time<T>(
    deadline: Monotonic,
    asked: impl Future<Output = Result<T, NoServer>>,
) -> Result<T, NoServer> {
    until(deadline, asked).await.unwrap_or_else(|| Err(NoServer::timeout()))
}

/// Lets a runtime that was blocked notice which of its connections have been closed; a request written to one of those
/// would have an unknown fate.
pub(super) async fn catch_up() {
    tokio::task::yield_now().await;
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}
