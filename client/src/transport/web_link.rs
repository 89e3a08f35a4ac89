//! The link to a store behind HTTP: a pool of connections, and the server's readiness.
//!
//! The differences between such stores are in their [`WebStore`]: how a request is written and sent, where credentials come
//! from, and which harmless request greets the server. How the requests of an exchange are paired with their answers, what
//! is sent once more, whose clock is told, and when the server counts as gone, is here, for all of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold_core::op::{Denial, Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::{Exchange, HttpResponse, Progress, Repeat, Repeats};
use reqwest::{Client, RequestBuilder};

use super::connections::Link;
use super::deadline::until;
use super::pauses::patience;
use super::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, all, catch_up, in_time};
use super::web::{Pool, Web};
use super::{Answer, Answering};
use crate::host::clock;

/// The longest body that is read; no answer to us is longer.
pub(super) const MOST_BODY: usize = 1 << 20;

/// A store behind HTTP, which all of its links share. Its name is for messages.
pub(super) trait WebStore: fmt::Display + Send + Sync + Sized + 'static {
    type Exchange: Exchange<Ask: Send + Sync, Heard: Send + Sync> + Send + Sync;
    /// Keys that requests are signed with, or a token that names their sender.
    type Keys: Send + Sync;

    fn web(&self) -> &Arc<Web>;

    /// Begins an exchange.
    ///
    /// # Errors
    /// A name or a length that the store does not take.
    fn begin(&self, request: &Transmit) -> Result<Self::Exchange, Denial>;

    /// Hands answers to an exchange, with what is remembered of the store.
    fn take(self: &Arc<Self>, exchange: &mut Self::Exchange, answers: Vec<Asked<Self>>) -> Progress;

    /// The keys of this moment, or others than those that were refused.
    ///
    /// # Errors
    /// There are none. Nothing of the request itself has left.
    fn keys(
        link: &WebLink<Self>,
        refused: Option<&Self::Keys>,
        deadline: Monotonic,
    ) -> impl Future<Output = Result<Self::Keys, Outcome>> + Send;

    /// Sends a request once.
    ///
    /// # Errors
    /// There is no answer to it.
    fn send(
        link: &WebLink<Self>,
        ask: &Ask<Self>,
        keys: &Self::Keys,
        deadline: Monotonic,
    ) -> impl Future<Output = Result<Heard<Self>, NoAnswer>> + Send;

    /// Something to do before the request that got this answer is sent once more.
    fn repeat(&self, _heard: &Heard<Self>) -> Option<Repeat> {
        None
    }

    /// Sets the server's clock, in milliseconds since 1970.
    fn set_clock(&self, _unix_ms: u64) {}

    /// Makes sure that requests of this kind may be sent at all.
    ///
    /// # Errors
    /// They may not, or nobody knows. None has left.
    fn may_ask(
        _link: &Arc<WebLink<Self>>,
        _asks: &[Ask<Self>],
        _deadline: Monotonic,
    ) -> impl Future<Output = Result<(), Outcome>> + Send {
        std::future::ready(Ok(()))
    }

    /// Sends a harmless request, and judges the answer.
    fn greet(link: &Arc<WebLink<Self>>) -> impl Future<Output = Greeted> + Send;
}

pub(super) type Ask<S> = <<S as WebStore>::Exchange as Exchange>::Ask;
pub(super) type Heard<S> = <<S as WebStore>::Exchange as Exchange>::Heard;
/// An answer, or the outcome that its absence means.
pub(super) type Asked<S> = Result<Heard<S>, Outcome>;

/// The reason why there is no answer to a request.
#[derive(Clone, Debug)]
pub(super) enum NoAnswer {
    Transport(TransportFault),
    /// Something else gives the reason; the outcome that it means.
    Judged(Outcome),
}

impl From<TransportFault> for NoAnswer {
    fn from(fault: TransportFault) -> Self {
        Self::Transport(fault)
    }
}

impl NoAnswer {
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Transport(fault) => fault.outcome(),
            Self::Judged(outcome) => outcome.clone(),
        }
    }

    /// Tells if the server may be gone. It is not where too many requests are under way here.
    fn is_trouble(&self) -> bool {
        match self {
            Self::Transport(TransportFault::NotSent(fault)) => fault.kind != FaultKind::Busy,
            Self::Transport(TransportFault::Unknown(_)) => true,
            Self::Judged(_) => false,
        }
    }
}

/// A pool that requests share, each on a connection of its own while it lasts.
pub(super) struct WebLink<S> {
    pub(super) store: Arc<S>,
    pub(super) pool: Pool,
    readiness: Arc<Readiness>,
}

/// Requests that are sent at the same time.
enum Asks<'a, S: WebStore> {
    One(&'a Ask<S>),
    Round(&'a mut S::Exchange),
}

impl<S: WebStore> Asks<'_, S> {
    fn requests(&self) -> &[Ask<S>] {
        match self {
            Self::One(ask) => std::slice::from_ref(ask),
            Self::Round(exchange) => exchange.requests(),
        }
    }

    /// The deadline of a request that is sent now. One that is no operation has no more time than a connection.
    fn until(&self, deadline: Monotonic) -> Monotonic {
        match self {
            Self::One(_) => deadline.min(clock::monotonic().plus(CONNECT_PATIENCE)),
            Self::Round(_) => deadline,
        }
    }

    fn set_clock(&mut self, unix_ms: u64) {
        match self {
            Self::One(_) => {}
            Self::Round(exchange) => exchange.set_clock(unix_ms),
        }
    }
}

impl<S: WebStore> WebLink<S> {
    pub(super) fn new(store: Arc<S>) -> Self {
        let pool = Pool::new(Arc::clone(store.web()));
        Self { store, pool, readiness: Arc::default() }
    }

    /// Waits until the server has answered.
    ///
    /// # Errors
    /// It does not by `deadline`, refuses us, or is of another kind.
    pub(super) async fn ready_by(self: &Arc<Self>, deadline: Monotonic) -> Greeted {
        in_time(deadline, self.wait_ready(CONNECT_PATIENCE)).await
    }

    /// Sends a request that is no operation on a lock, once the server has answered another.
    ///
    /// # Errors
    /// There is no server, or no answer by `deadline`.
    #[cfg(any(feature = "dynamodb", feature = "http"))]
    pub(super) async fn greeted(self: &Arc<Self>, ask: &Ask<S>, deadline: Monotonic) -> Asked<S> {
        self.ready_by(deadline).await.map_err(|why| why.before().outcome())?;
        catch_up().await;
        self.command(ask, deadline).await
    }

    /// The next request waits until the server has answered again.
    pub(super) fn doubt(&self) {
        self.readiness.reset();
    }

    /// Sends a request that is no operation on a lock.
    ///
    /// # Errors
    /// There is no answer by `deadline`.
    pub(super) async fn command(self: &Arc<Self>, ask: &Ask<S>, deadline: Monotonic) -> Asked<S> {
        S::may_ask(self, std::slice::from_ref(ask), deadline).await?;
        self.untried(ask, deadline).await.map_err(|why| self.meaning(why))
    }

    /// The same, whether or not such requests may be sent, and whether or not the server is known to be there.
    ///
    /// # Errors
    /// There is no answer by `deadline`.
    pub(super) async fn untried(&self, ask: &Ask<S>, deadline: Monotonic) -> Result<Heard<S>, NoAnswer> {
        let mut answers = self.ask_all(Asks::One(ask), deadline).await;
        answers.pop().unwrap_or_else(|| Err(NoAnswer::Judged(Outcome::Unknown(Fault::of(FaultKind::Cancelled)))))
    }

    /// Sends a request of which `ask` makes what leaves, and reads the answer.
    ///
    /// # Errors
    /// No connection, or no answer by `deadline`.
    pub(super) async fn post(
        &self,
        deadline: Monotonic,
        ask: impl FnOnce(&Client) -> Result<RequestBuilder, Fault>,
    ) -> Result<HttpResponse, TransportFault> {
        self.pool.send(deadline, &*self.store, MOST_BODY, ask).await
    }

    async fn keys(&self, refused: Option<&S::Keys>, deadline: Monotonic) -> Result<S::Keys, NoAnswer> {
        S::keys(self, refused, deadline).await.map_err(NoAnswer::Judged)
    }

    /// Sends requests at the same time. Those that were refused for their keys or for the clock are signed again and sent
    /// once more, all of them after the same search.
    async fn ask_all(&self, mut asks: Asks<'_, S>, deadline: Monotonic) -> Vec<Result<Heard<S>, NoAnswer>> {
        let mut keys = match self.keys(None, deadline).await {
            Ok(keys) => keys,
            Err(why) => return asks.requests().iter().map(|_| Err(why.clone())).collect(),
        };
        let sent = asks.requests().iter().map(|ask| S::send(self, ask, &keys, asks.until(deadline)));
        let mut answers = join_all(sent).await;
        let mut repeats = vec![Repeats::default(); answers.len()];
        loop {
            let mut reason = None;
            let mut again = Vec::new();
            for (at, (answer, repeats)) in answers.iter().zip(&mut repeats).enumerate() {
                let Some(repeat) = answer.as_ref().ok().and_then(|heard| self.store.repeat(heard)) else { continue };
                // Which reason comes first does not matter: the other has its turn.
                if reason.is_none_or(|reason| is_like(reason, repeat)) && repeats.allow(repeat) {
                    reason = Some(repeat);
                    again.push(at);
                }
            }
            let Some(reason) = reason else { return answers };
            let prepared = match reason {
                Repeat::ServerTime(unix_ms) => {
                    self.store.set_clock(unix_ms);
                    asks.set_clock(unix_ms);
                    Ok(())
                }
                Repeat::FreshCredentials => self.keys(Some(&keys), deadline).await.map(|others| keys = others),
            };
            let fresh = match prepared {
                Ok(()) => {
                    let requests = again.iter().filter_map(|at| asks.requests().get(*at));
                    join_all(requests.map(|ask| S::send(self, ask, &keys, asks.until(deadline)))).await
                }
                // The answers of all others stand.
                Err(why) => again.iter().map(|_| Err(why.clone())).collect(),
            };
            for (at, answer) in again.into_iter().zip(fresh) {
                answers[at] = answer;
            }
        }
    }

    fn meaning(&self, why: NoAnswer) -> Outcome {
        if why.is_trouble() {
            self.doubt();
        }
        why.outcome()
    }

    async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let met = S::greet(&self).await;
        if let Err(why) = &met {
            why.report(Arc::clone(&self.store));
        }
        met
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let mut exchange = match self.store.begin(request) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(all(request, &Outcome::NotApplied(Refusal::Denied(denial)))),
        };
        catch_up().await;
        loop {
            let answers = match S::may_ask(self, exchange.requests(), request.deadline).await {
                Ok(()) => self.ask_all(Asks::Round(&mut exchange), request.deadline).await,
                Err(outcome) => exchange.requests().iter().map(|_| Err(NoAnswer::Judged(outcome.clone()))).collect(),
            };
            let answers = answers.into_iter().map(|answer| answer.map_err(|why| self.meaning(why))).collect();
            if let Progress::Done(outcomes) = self.store.take(&mut exchange, answers) {
                return Ok(outcomes);
            }
        }
    }
}

/// Keys that a search finds by `deadline`.
///
/// # Errors
/// It finds none, or not in time.
#[cfg(feature = "dynamodb")]
pub(super) async fn found_by<K>(
    deadline: Monotonic,
    search: impl Future<Output = Result<K, Refusal>>,
) -> Result<K, Outcome> {
    let late = || Refusal::NeedsCredentials(Fault::new(FaultKind::Timeout, "no valid credentials were found in time"));
    until(deadline, search).await.unwrap_or_else(|| Err(late())).map_err(Outcome::NotApplied)
}

fn is_like(one: Repeat, other: Repeat) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

impl<S: WebStore> Link for WebLink<S> {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move {
            match until(request.deadline, self.wait_ready(patience(&request))).await {
                Some(Ok(())) => self.exchange(&request).await,
                Some(Err(why)) => why.answer(&request),
                None => {
                    let detail = "no answer from the server in time";
                    NoServer::Fault(Fault::new(FaultKind::Unreachable, detail)).answer(&request)
                }
            }
        })
    }

    fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.readiness.begin(CONNECT_PATIENCE, || Arc::clone(&self).greet());
    }
}
