//! One pool of connections to a server, and the server's readiness.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::redis::{Command, Exchange, Progress, Session, refusal};
use leasehold_wire::resp::Value;
use leasehold_wire::rest;
use reqwest::Client;

use super::access::Access;
use crate::host::clock;
use crate::transport::connections::{Link, until};
use crate::transport::pauses::patience;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, all, catch_up, in_time};
use crate::transport::web::Pool;
use crate::transport::{Answer, Answering};

/// The reason why there is no reply to a command.
enum NoReply {
    Transport(TransportFault),
    /// The status or the body gives the reason; the outcome that it means.
    Judged(Outcome),
}

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the server by a `PING`.
pub(super) struct HttpLink {
    access: Arc<Access>,
    pool: Pool,
    session: Session,
    readiness: Arc<Readiness>,
}

impl HttpLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        let pool = access.pool();
        Self { access, pool, session, readiness: Arc::default() }
    }

    /// Waits until the server has answered.
    ///
    /// # Errors
    /// The server does not answer by `deadline`, refuses us, or is of another kind.
    pub(super) async fn ready_by(self: &Arc<Self>, deadline: Monotonic) -> Greeted {
        in_time(deadline, self.wait_ready(CONNECT_PATIENCE)).await
    }

    /// Sends a command.
    ///
    /// # Errors
    /// No server, or no reply by `deadline`.
    pub(super) async fn command(self: &Arc<Self>, command: &Command, deadline: Monotonic) -> Result<Value, NoServer> {
        self.ready_by(deadline).await?;
        catch_up().await;
        self.post(command, deadline).await.map_err(|why| self.no_server(why))
    }

    async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let ping = Command::new(["PING"]);
        let met = match self.post(&ping, clock::monotonic().plus(CONNECT_PATIENCE)).await {
            Ok(reply) => self.judge(&reply),
            Err(NoReply::Transport(TransportFault::Unknown(fault))) if fault.kind == FaultKind::Timeout => {
                Err(NoServer::Fault(Fault::new(FaultKind::Timeout, "no answer to a PING")))
            }
            Err(why) => Err(self.no_server(why)),
        };
        if let Err(why) = &met {
            why.report(Arc::clone(&self.access));
        }
        met
    }

    fn judge(&self, reply: &Value) -> Greeted {
        let is_pong = matches!(reply, Value::Simple(text) if text == "PONG")
            || matches!(reply, Value::Bulk(text) if text == b"PONG");
        if is_pong {
            return Ok(());
        }
        let Value::Error(error) = reply else {
            let said = self.something_else("its answer to PING is not PONG");
            return Err(NoServer::Fault(Fault::new(FaultKind::Protocol, &said)));
        };
        match refusal(error) {
            // A user who may not PING is logged in all the same.
            _ if error.starts_with("NOPERM") => Ok(()),
            Some(refusal) => Err(NoServer::Refused(refusal)),
            None => Err(NoServer::Fault(Fault::new(FaultKind::Server, error))),
        }
    }

    fn no_server(&self, why: NoReply) -> NoServer {
        match why {
            NoReply::Transport(TransportFault::NotSent(fault) | TransportFault::Unknown(fault)) => {
                NoServer::Fault(fault)
            }
            NoReply::Judged(Outcome::NotApplied(refusal)) => NoServer::Refused(refusal),
            NoReply::Judged(Outcome::Unknown(fault)) if fault.kind == FaultKind::Protocol => {
                let said = self.something_else(fault.detail.as_deref().unwrap_or_default());
                NoServer::Fault(Fault::new(FaultKind::Protocol, &said))
            }
            NoReply::Judged(Outcome::Unknown(fault)) => NoServer::Fault(fault),
            NoReply::Judged(Outcome::Applied(_)) => NoServer::Fault(Fault::of(FaultKind::Protocol)),
        }
    }

    fn something_else(&self, what: &str) -> String {
        format!("this is not {} ({what}): check host, port and path of the store url", self.access.kind_of_server())
    }

    async fn post(&self, command: &Command, deadline: Monotonic) -> Result<Value, NoReply> {
        let ask = |client: &Client| self.access.request(client, command);
        let answered =
            self.pool.send(deadline, &*self.access, rest::MAX_BODY, ask).await.map_err(NoReply::Transport)?;
        let head = rest::Head {
            status: answered.status,
            content_type: answered.header("content-type"),
            location: answered.header("location"),
        };
        rest::judge(self.access.dialect, &head, &answered.body, self.access.secret()).map_err(NoReply::Judged)
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let left = request.deadline.since(clock::monotonic());
        let mut exchange = match self.session.begin(request.id, &request.ops, left, clock::unix_ms()) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(all(request, &Outcome::NotApplied(Refusal::Denied(denial)))),
        };
        catch_up().await;
        loop {
            let command = match only_command(&exchange) {
                Ok(command) => command,
                Err(denial) => return Ok(all(request, &Outcome::NotApplied(Refusal::Denied(denial)))),
            };
            match self.post(command, request.deadline).await {
                Ok(reply) => match exchange.replies(vec![reply]) {
                    Progress::Done(outcomes) => return Ok(outcomes),
                    // The first round applied nothing, so the second decides alone.
                    Progress::Again => {}
                },
                Err(NoReply::Judged(outcome)) => return Ok(all(request, &outcome)),
                Err(NoReply::Transport(fault)) => {
                    self.readiness.reset();
                    return Err(fault);
                }
            }
        }
    }
}

impl Link for HttpLink {
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

/// The only command of an exchange. Without replicas there is one for each operation, or one for all renewals, and the
/// core batches nothing else.
fn only_command(exchange: &Exchange) -> Result<&Command, Denial> {
    match exchange.commands() {
        [command] => Ok(command),
        commands => {
            debug_assert_eq!(commands.len(), 1, "one request over HTTP carries one command");
            Err(Denial::new(DenialKind::Other, "operations in different commands cannot be sent together over HTTP"))
        }
    }
}
