//! One connection to a Redis, made when it is needed, and abandoned as soon as it is in doubt.

use std::sync::Arc;

use ::redis::aio::ConnectionLike;
use leasehold_core::op::{Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::redis::{Command, Progress, Session, Topology, of_one_server};
use leasehold_wire::resp::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tracing::Level;

use super::access::{Access, CONNECT_PATIENCE, Connection};
use super::value;
use crate::clock;
use crate::reports;
use crate::sync::Mutex;
use crate::transport::Answer;
use crate::transport::connections::{Link, until};
use crate::transport::pauses::LastAttempt;

/// The most requests of one link that wait for replicas at the same time, each on a connection of its own; more wait
/// for their turn. [`MOST_ASIDE`] of those connections are kept for later.
const MOST_ALONE: usize = 16;
const MOST_ASIDE: usize = 4;

const REPLICA: &str = "READONLY: the server is a replica; name its primary in the store url";
const SENTINEL: &str = "the server is a Sentinel, which keeps no locks; write redis+sentinel://host:26379/master-name";
const CLUSTER: &str = "the server is a node of a Redis Cluster, and the name belongs to another node; write \
                       redis+cluster://host:6379 instead of redis://host:6379";

/// The reason why there is no connection.
#[derive(Clone, Debug)]
pub(super) enum NoConnection {
    /// It may work later.
    Fault(Fault),
    /// The server was reached and refuses.
    Refused(Refusal),
}

/// A connection that many requests share, each waiting for its own answer.
pub(super) struct RedisLink {
    access: Arc<Access>,
    session: Session,
    spares: Spares,
    /// Permits for connections that one request uses alone.
    room: Arc<Semaphore>,
    state: Mutex<State>,
}

/// Tells if connections are kept for requests that need one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spares {
    None,
    /// For requests that wait for replicas.
    ForWaits,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    aside: Vec<Open>,
    connecting: Option<watch::Receiver<Option<Connected>>>,
    last: LastAttempt<NoConnection>,
    made: u64,
}

#[derive(Clone)]
struct Open {
    connection: Connection,
    /// Identifies this connection.
    number: u64,
}

/// The role that a server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Replica,
    Sentinel,
    /// The user may not ask for it.
    Unknown,
}

/// The reason why commands have no replies.
#[derive(Debug)]
pub(super) enum NoReply {
    /// None of the commands has left.
    NotSent(NoConnection),
    /// Each command may have been carried out.
    Unknown(Fault),
}

type Connected = Result<Open, NoConnection>;

/// Tells if any byte of a request may have left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    No,
    Perhaps(u64),
}

impl RedisLink {
    pub(super) fn new(access: Arc<Access>, session: Session, spares: Spares) -> Self {
        Self { access, session, spares, room: Arc::new(Semaphore::new(MOST_ALONE)), state: Mutex::default() }
    }

    /// Sends commands, one reply each.
    ///
    /// # Errors
    /// No connection, no answer by `deadline`, or an answer that is not RESP.
    pub(super) async fn command(
        self: &Arc<Self>,
        commands: &[Command],
        deadline: Monotonic,
    ) -> Result<Vec<Value>, NoConnection> {
        match self.call(commands, deadline).await {
            Ok((replies, _)) => Ok(replies),
            Err(NoReply::NotSent(why)) => Err(why),
            Err(NoReply::Unknown(fault)) => Err(NoConnection::Fault(fault)),
        }
    }

    /// Sends commands of requests, one reply each, and reports if any of them may have left. The number is that of the
    /// connection, for [`Self::leave`].
    ///
    /// # Errors
    /// No connection, no answer by `deadline`, or an answer that is not RESP.
    pub(super) async fn call(
        self: &Arc<Self>,
        commands: &[Command],
        deadline: Monotonic,
    ) -> Result<(Vec<Value>, u64), NoReply> {
        let mut sent = Sent::No;
        let asked = async {
            let (mut open, turn) = if commands.iter().any(awaits_replicas) {
                self.aside().await.map(|(open, permit)| (open, Some(permit)))
            } else {
                self.connection().await.map(|open| (open, None))
            }
            .map_err(NoReply::NotSent)?;
            sent = Sent::Perhaps(open.number);
            let number = open.number;
            let replies = send(&mut open.connection, commands).await.map_err(|error| {
                self.leave(number);
                NoReply::Unknown(fault_of(&error))
            })?;
            if turn.is_some() {
                self.put_aside(open);
            }
            Ok((replies, number))
        };
        if let Some(replies) = until(deadline, asked).await {
            return replies;
        }
        match sent {
            Sent::No => Err(NoReply::NotSent(NoConnection::Fault(self.access.too_late("no connection in time")))),
            Sent::Perhaps(number) => {
                self.leave(number);
                Err(NoReply::Unknown(Fault::of(FaultKind::Timeout)))
            }
        }
    }

    /// The open connection, or the one that is being made, or a new one.
    async fn connection(self: &Arc<Self>) -> Connected {
        let mut connecting = match self.connecting() {
            Ok(connecting) => connecting,
            Err(connected) => return connected,
        };
        let gone = || Err(NoConnection::Fault(Fault::of(FaultKind::Cancelled)));
        let connected = connecting.wait_for(Option::is_some).await;
        connected.ok().and_then(|connected| connected.clone()).unwrap_or_else(gone)
    }

    /// The connection that is being made, or a new one.
    ///
    /// # Errors
    /// The open connection, or the reason why there is none.
    fn connecting(self: &Arc<Self>) -> Result<watch::Receiver<Option<Connected>>, Connected> {
        let mut state = self.state.lock();
        if let Some(open) = state.open.as_ref().filter(|open| !open.connection.is_over()) {
            return Err(Ok(open.clone()));
        }
        if let Some(why) = state.last.forbids_another() {
            return Err(Err(why));
        }
        match &state.connecting {
            // The runtime that was making it may be gone.
            Some(connecting) if connecting.has_changed().is_ok() => Ok(connecting.clone()),
            Some(_) | None => {
                let (done, connecting) = watch::channel(None);
                state.connecting = Some(connecting.clone());
                // In a task of its own, so that it gets its time even if the request has little left.
                tokio::spawn(Arc::clone(self).connect(done));
                Ok(connecting)
            }
        }
    }

    async fn connect(self: Arc<Self>, done: watch::Sender<Option<Connected>>) {
        let connected = match self.spares {
            Spares::None => self.make().await,
            // Both at once, so that a first request with replicas need not wait for a second connection.
            Spares::ForWaits => {
                let (connected, spare) = tokio::join!(self.make(), self.make());
                if let Ok(spare) = spare {
                    self.put_aside(spare);
                }
                connected
            }
        };
        let mut state = self.state.lock();
        state.connecting = None;
        let connected = match connected {
            Ok(open) => {
                state.last.succeeded();
                state.open = Some(open.clone());
                Ok(open)
            }
            Err(why) => {
                state.last.failed(why.clone());
                let (access, reason) = (Arc::clone(&self.access), why.clone());
                reports::queue(Level::DEBUG, move || {
                    tracing::debug!(target: "leasehold", store = %access, why = ?reason, "no connection");
                });
                Err(why)
            }
        };
        drop(state);
        let _ = done.send(Some(connected));
    }

    async fn make(self: &Arc<Self>) -> Connected {
        let connection = self.access.connect().await?;
        let number = {
            let mut state = self.state.lock();
            state.made += 1;
            state.made
        };
        let open = Open { connection, number };
        // Now, so that no request needs the time for it. Without an answer the request asks again.
        if self.session.topology() == Topology::Single {
            let _ = tokio::time::timeout(CONNECT_PATIENCE, open.misleads()).await;
        }
        Ok(open)
    }

    /// A connection for the exclusive use of the permit's owner.
    async fn aside(self: &Arc<Self>) -> Result<(Open, OwnedSemaphorePermit), NoConnection> {
        let gone = || NoConnection::Fault(Fault::of(FaultKind::Cancelled));
        let permit = Arc::clone(&self.room).acquire_owned().await.map_err(|_| gone())?;
        while let Some(open) = self.take_aside() {
            if !open.connection.is_over() {
                return Ok((open, permit));
            }
        }
        // In a task of its own: if this request has no time for it, the next one can use it.
        let (give, take) = oneshot::channel();
        let link = Arc::clone(self);
        tokio::spawn(async move {
            let made = link.make().await;
            if let Err(Ok((open, _permit))) = give.send(made.map(|open| (open, permit))) {
                link.put_aside(open);
            }
        });
        take.await.map_err(|_| gone())?
    }

    fn take_aside(&self) -> Option<Open> {
        self.state.lock().aside.pop()
    }

    fn put_aside(&self, open: Open) {
        let mut state = self.state.lock();
        if state.aside.len() < MOST_ASIDE {
            state.aside.push(open);
        }
    }

    /// Uses the connection for no new request. Others may still wait for answers on it; it closes with the last of
    /// them.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.state.lock();
        if state.open.as_ref().is_some_and(|open| open.number == number) {
            state.open = None;
        }
        state.aside.retain(|open| open.number != number);
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit, sent: &mut Sent) -> Answer {
        let mut open = match self.connection().await {
            Ok(open) => open,
            Err(NoConnection::Fault(fault)) => return Err(TransportFault::NotSent(fault)),
            Err(NoConnection::Refused(refusal)) => return Ok(refused(request, &refusal)),
        };
        let writes = request.ops.iter().any(|op| !matches!(op.op, Op::Read));
        if writes && let Some(why) = open.misleads().await {
            self.leave(open.number);
            return Ok(refused(request, &Refusal::Unavailable(Fault::new(FaultKind::Server, why))));
        }
        let left = request.deadline.since(clock::monotonic());
        let mut exchange = match self.session.begin(request.id, &request.ops, left, clock::unix_ms()) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(refused(request, &Refusal::Denied(denial))),
        };
        // A request that waits for replicas delays all later ones on the same connection.
        let mut turn = None;
        if exchange.commands().iter().any(awaits_replicas) {
            let (spare, permit) = match self.aside().await {
                Ok(aside) => aside,
                Err(NoConnection::Fault(fault)) => return Err(TransportFault::NotSent(fault)),
                Err(NoConnection::Refused(refusal)) => return Ok(refused(request, &refusal)),
            };
            if let Some(why) = spare.misleads().await {
                return Ok(refused(request, &Refusal::Unavailable(Fault::new(FaultKind::Server, why))));
            }
            open = spare;
            turn = Some(permit);
        }
        loop {
            *sent = Sent::Perhaps(open.number);
            match send(&mut open.connection, exchange.commands()).await {
                Ok(replies) => {
                    // The name may lead to the new primary by now.
                    let mut in_doubt = replies.iter().any(is_of_a_replica);
                    // A redirection means that the url names one node of a cluster.
                    let replies = replies.into_iter().map(|reply| of_one_server(reply, CLUSTER));
                    let progress = exchange.answers(replies.collect());
                    if let Progress::Done(outcomes) = &progress {
                        // After a reply that does not belong to its request, later ones do not belong to theirs.
                        in_doubt |= outcomes.iter().any(is_nonsense);
                    }
                    if in_doubt {
                        self.leave(open.number);
                    }
                    match progress {
                        Progress::Done(outcomes) => {
                            if turn.is_some() && !in_doubt {
                                self.put_aside(open);
                            }
                            return Ok(outcomes);
                        }
                        Progress::Again => {}
                    }
                }
                Err(error) => {
                    self.leave(open.number);
                    return Err(TransportFault::Unknown(fault_of(&error)));
                }
            }
        }
    }
}

impl Open {
    /// The reason why it leads to the wrong server, if it does: a writable replica would grant locks that its primary
    /// has granted to others. Where the user may not ask, the server is assumed to be the primary.
    async fn misleads(&self) -> Option<&'static str> {
        match self.connection.role().await {
            Role::Replica => Some(REPLICA),
            Role::Sentinel => Some(SENTINEL),
            Role::Master | Role::Unknown => None,
        }
    }
}

pub(super) async fn role_of(connection: &Connection) -> Role {
    let mut connection = connection.clone();
    let role = send(&mut connection, &[Command { args: vec![b"ROLE".to_vec()] }]).await;
    let Some(Value::Array(parts)) = role.ok().and_then(|replies| replies.into_iter().next()) else {
        return Role::Unknown;
    };
    match parts.first() {
        Some(Value::Bulk(word)) if word == b"slave" => Role::Replica,
        Some(Value::Bulk(word)) if word == b"sentinel" => Role::Sentinel,
        Some(Value::Bulk(word)) if word == b"master" => Role::Master,
        Some(_) | None => Role::Unknown,
    }
}

impl Link for RedisLink {
    async fn ask(self: Arc<Self>, request: Transmit) -> Answer {
        let mut sent = Sent::No;
        let answer = until(request.deadline, self.exchange(&request, &mut sent)).await;
        answer.unwrap_or_else(|| match sent {
            Sent::No => Err(TransportFault::NotSent(self.access.too_late("no connection in time"))),
            Sent::Perhaps(number) => {
                // Its next reply would belong to this request.
                self.leave(number);
                Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout)))
            }
        })
    }

    fn is_ready(&self) -> bool {
        self.state.lock().open.as_ref().is_some_and(|open| !open.connection.is_over())
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.connecting();
    }
}

pub(super) async fn send(connection: &mut Connection, commands: &[Command]) -> ::redis::RedisResult<Vec<Value>> {
    let ticket = connection.limit.allow(commands);
    if let [command] = commands {
        let reply = connection.driver.req_packed_command(&packed(command)).await;
        connection.limit.settle(ticket);
        return reply.map(|reply| vec![value::of(reply)]).or_else(|error| Ok(vec![value::of_error(error)?]));
    }
    let mut pipeline = ::redis::Pipeline::with_capacity(commands.len());
    for command in commands {
        pipeline.add_command(packed(command));
    }
    let replies = connection.driver.req_packed_commands(&pipeline, 0, commands.len()).await;
    connection.limit.settle(ticket);
    Ok(replies?.into_iter().map(value::of).collect())
}

pub(super) fn awaits_replicas(command: &Command) -> bool {
    command.args.first().is_some_and(|name| name == b"WAIT")
}

fn packed(command: &Command) -> ::redis::Cmd {
    let bytes = command.args.iter().map(Vec::len).sum();
    let mut packed = ::redis::Cmd::with_capacity(command.args.len(), bytes);
    for arg in &command.args {
        packed.arg(arg.as_slice());
    }
    packed
}

pub(super) fn refused(request: &Transmit, refusal: &Refusal) -> Vec<Outcome> {
    request.ops.iter().map(|_| Outcome::NotApplied(refusal.clone())).collect()
}

pub(super) fn is_nonsense(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(fault) if fault.kind == FaultKind::Protocol)
}

/// Renewals share one reply, in which each may be an error.
fn is_of_a_replica(reply: &Value) -> bool {
    let is_readonly = |pair: &[Value]| {
        matches!(pair, [Value::Bulk(word), Value::Bulk(error)]
            if word == b"error" && error.windows(8).any(|part| part == b"READONLY"))
    };
    if let Value::Array(parts) = reply {
        return parts.windows(2).any(is_readonly);
    }
    matches!(reply, Value::Error(error) if error.contains("READONLY"))
}

/// Converts an error of an established connection.
fn fault_of(error: &::redis::RedisError) -> Fault {
    let kind = if error.is_timeout() {
        FaultKind::Timeout
    } else if error.is_io_error() || error.is_connection_dropped() {
        FaultKind::Reset
    } else {
        FaultKind::Protocol
    };
    Fault::new(kind, &error.to_string())
}
