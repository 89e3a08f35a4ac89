//! One connection to a Redis, made when it is needed, and abandoned as soon as it is in doubt.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Denial, Fault, FaultKind, LockOp, Op, Outcome, Refusal, TransportFault};
use leasehold_core::time::time_to_say_why;
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::redis::{
    Codec, Command, ConnectionMemory, Exchange, Subscription, Topology, leads_elsewhere as errors_lead_elsewhere,
    of_one_server,
};
use leasehold_wire::resp::Value;
use leasehold_wire::{Exchange as _, Progress};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tracing::Level;

use super::access::{AskRole, RedisAccess};
use super::connection::{Broken, Connection, Role};
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::connections::{Home, Link};
use crate::transport::deadline::until;
use crate::transport::pauses::{CONNECT_PATIENCE, LastAttempt, UnderWay, patience};
use crate::transport::{Answer, Answering};

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

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// A connection that many requests share, each waiting for its own answer.
pub(super) struct RedisLink {
    access: Arc<RedisAccess>,
    codec: Codec,
    spares: Spares,
    home: Home,
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

/// Tells if a request of which nothing has left begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    OnNewConnection,
    No,
}

#[derive(Default)]
struct State {
    open: Option<Connection>,
    aside: Vec<Connection>,
    connecting: Option<UnderWay<Connected>>,
    last: LastAttempt<NoConnection>,
}

/// The reason why commands have no replies.
#[derive(Debug)]
pub(super) enum NoReply {
    /// None of the commands has left.
    NotSent(NoConnection),
    /// Each command may have been carried out.
    Unknown(Fault),
}

type Connected = Result<Connection, NoConnection>;

impl RedisLink {
    pub(super) fn new(access: Arc<RedisAccess>, codec: Codec, spares: Spares, home: Home) -> Self {
        let room = Arc::new(Semaphore::new(MOST_ALONE));
        Self { access, codec, spares, home, room, state: Mutex::default() }
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

    /// Sends commands of requests, one reply each, and reports if any of them may have left. The connection is the one that
    /// was used.
    ///
    /// # Errors
    /// No connection, no answer by `deadline`, or an answer that is not RESP.
    pub(super) async fn call(
        self: &Arc<Self>,
        commands: &[Command],
        deadline: Monotonic,
    ) -> Result<(Vec<Value>, Connection), NoReply> {
        let (connection, turn) = if commands.iter().any(awaits_replicas) {
            self.aside(deadline).await.map(|(connection, turn)| (connection, Some(turn)))
        } else {
            self.connection(deadline, CONNECT_PATIENCE).await.map(|connection| (connection, None))
        }
        .map_err(NoReply::NotSent)?;
        let replies = connection.send(commands, deadline).await.map_err(NoReply::from)?;
        if turn.is_some() {
            self.put_aside(&connection);
        }
        Ok((replies, connection))
    }

    /// The open connection, or one that is made by `deadline`; another attempt is begun if one has lasted for `patience`.
    async fn connection(self: &Arc<Self>, deadline: Monotonic, patience: Duration) -> Connected {
        let mut connecting = match self.connecting(patience) {
            Ok(connecting) => connecting,
            Err(connected) => return connected,
        };
        let now = clock::monotonic();
        let deadline = now.plus(time_to_say_why(deadline.since(now)));
        // In a box, because most requests find a connection, and their futures are moved.
        Box::pin(self.in_time(deadline, async move {
            let connected = connecting.wait_for(Option::is_some).await;
            connected.ok().and_then(|connected| connected.clone()).unwrap_or_else(|| Err(gone()))
        }))
        .await
    }

    /// Waits until `deadline`, by the timers of the runtime that makes the connections.
    async fn in_time<T: Send + 'static>(
        &self,
        deadline: Monotonic,
        work: impl Future<Output = Result<T, NoConnection>> + Send + 'static,
    ) -> Result<T, NoConnection> {
        let done = self.runtime().spawn(until(deadline, work)).await.map_err(|_| gone())?;
        done.unwrap_or_else(|| Err(NoConnection::Fault(self.access.too_late("no connection in time"))))
    }

    /// The runtime that makes the connections.
    fn runtime(&self) -> Handle {
        match &self.home {
            Home::Runtime => Handle::current(),
            Home::Thread(runtime) | Home::Loop(runtime, _) => runtime.clone(),
        }
    }

    /// The connection that is being made, or a new one.
    ///
    /// # Errors
    /// The open connection, or the reason why there is none.
    fn connecting(self: &Arc<Self>, patience: Duration) -> Result<watch::Receiver<Option<Connected>>, Connected> {
        let mut state = self.state.lock();
        if let Some(open) = state.open.as_ref().filter(|open| !open.is_over()) {
            return Err(Ok(open.clone()));
        }
        if let Some(why) = state.last.forbids_another() {
            return Err(Err(why));
        }
        match state.connecting.as_ref().and_then(|connecting| connecting.awaited(patience)) {
            Some(connecting) => Ok(connecting),
            None => {
                let (done, connecting) = watch::channel(None);
                state.connecting = Some(UnderWay::since_now(connecting.clone()));
                // In a task of its own, so that it gets its time even if the request has little left.
                self.runtime().spawn(Arc::clone(self).connect(done, connecting.clone()));
                Ok(connecting)
            }
        }
    }

    async fn connect(self: Arc<Self>, done: watch::Sender<Option<Connected>>, own: watch::Receiver<Option<Connected>>) {
        let connected = match self.spares {
            Spares::None => self.make().await,
            // Both at once, so that a first request with replicas need not wait for a second connection.
            Spares::ForWaits => {
                let (connected, spare) = tokio::join!(self.make(), self.make());
                if let Ok(spare) = spare {
                    self.put_aside(&spare);
                }
                connected
            }
        };
        let mut state = self.state.lock();
        let is_last = state.connecting.take_if(|connecting| connecting.is(&own)).is_some();
        let connected = match connected {
            Ok(open) => {
                state.last.succeeded();
                // An older attempt may lead to a server that is the master no longer.
                if is_last || state.open.as_ref().is_none_or(Connection::is_over) {
                    state.open = Some(open.clone());
                }
                Ok(open)
            }
            Err(why) => {
                if is_last {
                    state.last.failed(why.clone());
                }
                let (access, reason) = (Arc::clone(&self.access), why.clone());
                reports::queue(Level::DEBUG, move || {
                    tracing::debug!(target: "leasehold", store = %access, why = %reason, "no connection");
                });
                Err(why)
            }
        };
        drop(state);
        let _ = done.send(Some(connected));
    }

    async fn make(&self) -> Connected {
        // A cluster's map says who is a master.
        let role = if self.codec.topology() == Topology::Single { AskRole::Yes } else { AskRole::No };
        self.access.connect(&self.home, role).await
    }

    /// A connection for the exclusive use of the permit's owner, until `deadline`.
    async fn aside(self: &Arc<Self>, deadline: Monotonic) -> Result<(Connection, OwnedSemaphorePermit), NoConnection> {
        let link = Arc::clone(self);
        let find = async move {
            let permit = Arc::clone(&link.room).acquire_owned().await.map_err(|_| gone())?;
            while let Some(connection) = link.take_aside() {
                if !connection.is_over() {
                    return Ok((connection, permit));
                }
            }
            // In a task of its own: if this request has no time for it, the next one can use it.
            let (give, take) = oneshot::channel();
            tokio::spawn(async move {
                let made = link.make().await;
                if let Err(Ok((connection, _permit))) = give.send(made.map(|connection| (connection, permit))) {
                    link.put_aside(&connection);
                }
            });
            take.await.map_err(|_| gone())?
        };
        Box::pin(self.in_time(deadline, find)).await
    }

    fn take_aside(&self) -> Option<Connection> {
        self.state.lock().aside.pop()
    }

    fn put_aside(&self, connection: &Connection) {
        let mut state = self.state.lock();
        if state.aside.len() < MOST_ASIDE && !connection.is_over() {
            state.aside.push(connection.clone());
        }
    }

    /// Leaves a server that takes no writes, by all connections that may lead there.
    fn leave_server(&self, connection: &Connection) {
        connection.leave();
        let mut state = self.state.lock();
        let others = std::mem::take(&mut state.aside);
        others.iter().chain(&state.open).for_each(Connection::leave);
    }

    /// Writes down the commands of a request.
    fn begin(
        &self,
        request: &Transmit,
        memory: Option<&Mutex<ConnectionMemory>>,
        subscription: Option<Subscription>,
    ) -> Result<Exchange, Denial> {
        // Only replicas are given a part of it.
        let left = match self.spares {
            Spares::ForWaits => request.deadline.since(clock::monotonic()),
            Spares::None => Duration::ZERO,
        };
        let (id, ops, unix_ms) = (request.id, &request.ops, clock::unix_ms());
        let Some(memory) = memory else { return self.codec.begin(id, ops, left, unix_ms) };
        let mut memory = memory.lock();
        memory.listens(subscription);
        self.codec.begin_on(&memory, id, ops, left, unix_ms)
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit, retry: Retry) -> Answer {
        let unavailable = |why| match why {
            NoConnection::Fault(fault) => Err(TransportFault::NotSent(fault)),
            NoConnection::Refused(refusal) => Ok(refused(request, &refusal)),
        };
        let mut connection = match self.connection(request.deadline, patience(request)).await {
            Ok(connection) => connection,
            Err(why) => return unavailable(why),
        };
        // Of other requests the connection remembers nothing.
        let acquires = request.ops.iter().any(|op| matches!(op.op, Op::Acquire(_)));
        let memory = acquires.then(|| Arc::clone(connection.memory()));
        let queues = self.access.queues().filter(|_| request.ops.iter().any(asks_for_a_place));
        let subscription = queues.and_then(|queues| queues.subscription());
        let mut exchange = match self.begin(request, memory.as_deref(), subscription) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(refused(request, &Refusal::Denied(denial))),
        };
        // A request that waits for replicas delays all later ones on the same connection.
        let mut turn = None;
        if exchange.commands().iter().any(awaits_replicas) {
            match self.aside(request.deadline).await {
                Ok((alone, permit)) => (connection, turn) = (alone, Some(permit)),
                Err(why) => return unavailable(why),
            }
        }
        let writes = request.ops.iter().any(|op| !matches!(op.op, Op::Read));
        if writes && let Some(why) = misleads(&connection) {
            self.leave_server(&connection);
            return Ok(refused(request, &Refusal::Unavailable(Fault::new(FaultKind::Server, why))));
        }
        loop {
            let replies = match connection.send(exchange.commands(), request.deadline).await {
                Ok(replies) => replies,
                // The server closed it while it was idle, or it was left and closed with the last answer.
                Err(Broken::NotSent(_)) if retry == Retry::OnNewConnection && !exchange.may_hold() => {
                    return Box::pin(self.exchange(request, Retry::No)).await;
                }
                Err(Broken::NotSent(fault)) if !exchange.may_hold() => return Err(TransportFault::NotSent(fault)),
                Err(Broken::NotSent(fault) | Broken::Unknown(fault)) => return Err(TransportFault::Unknown(fault)),
            };
            // The name may lead to the new primary by now.
            if replies.iter().any(leads_elsewhere) {
                self.leave_server(&connection);
            }
            // A redirection means that the url names one node of a cluster.
            let progress = if replies.iter().all(|reply| reply.as_error().is_none()) {
                exchange.replies(replies)
            } else {
                exchange.answers(&mut (), replies.into_iter().map(|reply| of_one_server(reply, CLUSTER)).collect())
            };
            if let Progress::Done(outcomes) = progress {
                if let Some(memory) = &memory {
                    memory.lock().learn(&exchange, &request.ops, &outcomes);
                }
                if let (Some(queues), [op]) = (queues, &request.ops[..]) {
                    queues.note(&op.resource, op.lock, subscription, exchange.place(), exchange.reserved());
                }
                if outcomes.iter().any(is_nonsense) {
                    connection.condemn();
                }
                if turn.is_some() {
                    self.put_aside(&connection);
                }
                return Ok(outcomes);
            }
        }
    }
}

impl From<Broken> for NoReply {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::NotSent(fault) => Self::NotSent(NoConnection::Fault(fault)),
            Broken::Unknown(fault) => Self::Unknown(fault),
        }
    }
}

fn gone() -> NoConnection {
    NoConnection::Fault(Fault::of(FaultKind::Cancelled))
}

/// The reason why a connection leads to the wrong server, if it does: a writable replica would grant locks that its primary
/// has granted to others. Where the user may not ask, the server is assumed to be the primary.
fn misleads(connection: &Connection) -> Option<&'static str> {
    match connection.role() {
        Some(Role::Replica) => Some(REPLICA),
        Some(Role::Sentinel) => Some(SENTINEL),
        Some(Role::Master | Role::Unknown) | None => None,
    }
}

impl Link for RedisLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move { self.exchange(&request, Retry::OnNewConnection).await })
    }

    fn is_ready(&self) -> bool {
        self.state.lock().open.as_ref().is_some_and(|open| !open.is_over())
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.connecting(CONNECT_PATIENCE);
    }
}

fn asks_for_a_place(LockOp { op, .. }: &LockOp) -> bool {
    matches!(op, Op::Acquire(acquire) if acquire.in_queue)
}

pub(super) fn awaits_replicas(command: &Command) -> bool {
    command.name() == b"WAIT"
}

pub(super) fn refused(request: &Transmit, refusal: &Refusal) -> Vec<Outcome> {
    request.ops.iter().map(|_| Outcome::NotApplied(refusal.clone())).collect()
}

pub(super) fn is_nonsense(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(fault) if fault.kind == FaultKind::Protocol)
}

/// Tells if a reply says that another server takes the writes. Renewals share one reply, in which each may be an error.
pub(super) fn leads_elsewhere(reply: &Value) -> bool {
    let says_so = |pair: &[Value]| {
        matches!(pair, [Value::Bulk(word), Value::Bulk(error)]
            if word == b"error" && std::str::from_utf8(error).is_ok_and(errors_lead_elsewhere))
    };
    if let Value::Array(parts) = reply {
        return parts.windows(2).any(says_so);
    }
    reply.as_error().is_some_and(errors_lead_elsewhere)
}
