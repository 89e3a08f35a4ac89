//! One pool of connections to DynamoDB, and the server's readiness.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::dynamodb::{ErrorClass, Progress, Repeat, Request, Response, Session, classify};
use reqwest::Client;

use super::access::{Access, MOST_BODY};
use super::credentials::Keys;
use crate::host::clock;
use crate::transport::connections::{Link, until};
use crate::transport::pauses::patience;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, all, catch_up, in_time};
use crate::transport::web::Pool;
use crate::transport::{Answer, Answering};

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the server by a health check, and by finding keys to sign with.
pub(super) struct DynamodbLink {
    access: Arc<Access>,
    pool: Pool,
    session: Session,
    readiness: Arc<Readiness>,
}

/// A response, or the outcome that its absence means.
type Asked = Result<Response, Outcome>;

impl DynamodbLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        let pool = access.pool();
        Self { access, pool, session, readiness: Arc::default() }
    }

    /// Sends a request that is no operation on a lock. As for those, it tries fresh keys and the server's clock.
    ///
    /// # Errors
    /// No server, no keys, or no response, each within its own time limit, and all by `deadline`.
    pub(super) async fn command(
        self: &Arc<Self>,
        request: &Request,
        deadline: Monotonic,
    ) -> Result<Response, NoServer> {
        in_time(deadline, async {
            self.wait_ready(CONNECT_PATIENCE).await.map_err(NoServer::before)?;
            catch_up().await;
            let mut keys = self.access.keys().await.map_err(NoServer::Refused)?;
            let (mut refreshed, mut reset) = (false, false);
            loop {
                let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
                let response = self.post(request, &keys, deadline).await.map_err(NoServer::from)?;
                match repeat(&self.session, &response) {
                    Some(Repeat::FreshCredentials) if !refreshed => {
                        refreshed = true;
                        keys = self.access.other_keys(&keys).await.map_err(NoServer::Refused)?;
                    }
                    Some(Repeat::ServerTime(unix_ms)) if !reset => {
                        reset = true;
                        self.access.set_clock(unix_ms);
                    }
                    Some(_) | None => return Ok(response),
                }
            }
        })
        .await
    }

    /// The keys that requests are signed with now.
    ///
    /// # Errors
    /// No source has keys.
    pub(super) async fn keys(&self) -> Result<Arc<Keys>, NoServer> {
        self.access.keys().await.map_err(NoServer::Refused)
    }

    async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let met = match self.is_there().await {
            // The search has its own time limit and error message.
            Ok(()) => self.access.keys().await.map(|_| ()).map_err(NoServer::Refused),
            Err(fault) if fault.kind == FaultKind::Timeout => {
                let detail = format!("{}: no connection within {CONNECT_PATIENCE:?}", self.access);
                Err(NoServer::Fault(Fault::new(FaultKind::Timeout, &detail)))
            }
            Err(fault) => Err(NoServer::Fault(fault)),
        };
        if let Err(why) = &met {
            why.report(Arc::clone(&self.access));
        }
        met
    }

    /// Any answer will do: DynamoDB Local answers that it wants a signature.
    async fn is_there(&self) -> Result<(), Fault> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let asked = self.pool.send(deadline, &*self.access, MOST_BODY, |client| Ok(self.access.greeting(client)));
        asked.await.map(|_| ()).map_err(fault_of)
    }

    async fn post(&self, request: &Request, keys: &Keys, deadline: Monotonic) -> Asked {
        let ask = |client: &Client| self.access.request(client, request, keys);
        let answered = self.pool.send(deadline, &*self.access, MOST_BODY, ask).await.map_err(|trouble| {
            let is_busy = matches!(&trouble, TransportFault::NotSent(fault) if fault.kind == FaultKind::Busy);
            if !is_busy {
                self.readiness.reset();
            }
            trouble.outcome()
        })?;
        let date = answered.header("date").map(str::to_owned);
        Ok(Response { status: answered.status, date, body: answered.body })
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let mut keys = match until(request.deadline, self.access.keys()).await {
            Some(Ok(keys)) => keys,
            Some(Err(refusal)) => return Ok(all(request, &Outcome::NotApplied(refusal))),
            None => return Ok(all(request, &Outcome::NotApplied(no_keys_in_time()))),
        };
        let mut exchange = match self.session.begin(&request.ops, self.access.unix_ms()) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(all(request, &Outcome::NotApplied(Refusal::Denied(denial)))),
        };
        catch_up().await;
        loop {
            let asked = exchange.requests().iter().map(|asked| self.post(asked, &keys, request.deadline));
            let answers: Vec<Asked> = join_all(asked).await;
            match exchange.answers(answers) {
                Progress::Done(outcomes) => return Ok(outcomes),
                Progress::Again => {}
                Progress::Repeat(Repeat::ServerTime(unix_ms)) => self.access.set_clock(unix_ms),
                Progress::Repeat(Repeat::FreshCredentials) => {
                    let others = until(request.deadline, self.access.other_keys(&keys)).await;
                    match others.unwrap_or_else(|| Err(no_keys_in_time())) {
                        Ok(others) => keys = others,
                        // The exchange keeps the answers of all other operations.
                        Err(refusal) => {
                            let refused = exchange.requests().iter().map(|_| Err(Outcome::NotApplied(refusal.clone())));
                            if let Progress::Done(outcomes) = exchange.answers(refused.collect()) {
                                return Ok(outcomes);
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Link for DynamodbLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move {
            match until(request.deadline, self.wait_ready(patience(&request))).await {
                Some(Ok(())) => self.exchange(&request).await,
                Some(Err(why)) => why.answer(&request),
                None => {
                    let detail = "no answer from the server in time";
                    Err(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)))
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

fn repeat(session: &Session, response: &Response) -> Option<Repeat> {
    match (response.status != 200).then(|| classify(session.settings(), response))? {
        ErrorClass::Repeat(repeat, _) => Some(repeat),
        ErrorClass::ConditionFailed | ErrorClass::Refused(_) | ErrorClass::Unknown(_) => None,
    }
}

fn no_keys_in_time() -> Refusal {
    Refusal::NeedsCredentials(Fault::new(FaultKind::Timeout, "there were no valid keys in time"))
}

fn fault_of(trouble: TransportFault) -> Fault {
    match trouble {
        TransportFault::NotSent(fault) | TransportFault::Unknown(fault) => fault,
    }
}
