//! One connection to a Redis, made when it is needed, and left as soon as it is in doubt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use leasehold_core::op::{Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::wire::redis::{Command, Progress, Session};
use leasehold_core::wire::resp::Value;
use leasehold_core::{Monotonic, Transmit};
use tokio::sync::{OnceCell, watch};

use super::access::Access;
use super::value;
use crate::clock;
use crate::transport::Answer;
use crate::transport::lanes::{Link, until};

/// How soon after a failure the next connection is tried, at first and at most; in between it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

const REPLICA: &str = "READONLY: the server is a replica; name its primary in the store url";

/// Why there is no connection.
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    connecting: Option<watch::Receiver<Option<Connected>>>,
    failed: Option<Failed>,
    made: u64,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    /// Tells this connection from the ones before and after it.
    number: u64,
    /// Whether it leads to a replica, once that was asked.
    replica: Arc<OnceCell<bool>>,
}

type Connected = Result<Open, NoConnection>;

struct Failed {
    why: NoConnection,
    pause: Duration,
    until: Monotonic,
}

/// Whether any byte of a request may have left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    No,
    Perhaps(u64),
}

impl RedisLink {
    pub(super) fn new(access: Arc<Access>, session: Session) -> Self {
        Self { access, session, state: Mutex::default() }
    }

    /// Sends commands as they are, one reply each.
    ///
    /// # Errors
    /// No connection, no answer by `deadline`, or an answer that is no RESP.
    pub(super) async fn command(
        self: &Arc<Self>,
        commands: &[Command],
        deadline: Monotonic,
    ) -> Result<Vec<Value>, NoConnection> {
        let mut sent = Sent::No;
        let asked = async {
            let mut open = self.connection().await?;
            sent = Sent::Perhaps(open.number);
            let replies = send(&mut open.connection, commands).await;
            replies.map_err(|error| {
                self.leave(open.number);
                NoConnection::Fault(fault_of(&error))
            })
        };
        if let Some(replies) = until(deadline, asked).await {
            return replies;
        }
        if let Sent::Perhaps(number) = sent {
            self.leave(number);
        }
        Err(NoConnection::Fault(Fault::of(FaultKind::Timeout)))
    }

    /// The open connection, or the one that somebody is making, or a new one.
    async fn connection(self: &Arc<Self>) -> Connected {
        let mut connecting = {
            let mut state = self.lock();
            if let Some(open) = &state.open {
                return Ok(open.clone());
            }
            if let Some(failed) = state.failed.as_ref().filter(|failed| clock::monotonic() < failed.until) {
                return Err(failed.why.clone());
            }
            match &state.connecting {
                // Whoever was making it may have gone with its runtime.
                Some(connecting) if connecting.has_changed().is_ok() => connecting.clone(),
                Some(_) | None => {
                    let (done, connecting) = watch::channel(None);
                    state.connecting = Some(connecting.clone());
                    // On its own, so that it gets its time however little a request has left.
                    tokio::spawn(Arc::clone(self).connect(done));
                    connecting
                }
            }
        };
        let gone = || Err(NoConnection::Fault(Fault::of(FaultKind::Cancelled)));
        let connected = connecting.wait_for(Option::is_some).await;
        connected.ok().and_then(|connected| connected.clone()).unwrap_or_else(gone)
    }

    async fn connect(self: Arc<Self>, done: watch::Sender<Option<Connected>>) {
        let connected = self.access.connect().await;
        let mut state = self.lock();
        state.connecting = None;
        let connected = match connected {
            Ok(connection) => {
                state.failed = None;
                state.made += 1;
                let open = Open { connection, number: state.made, replica: Arc::default() };
                state.open = Some(open.clone());
                Ok(open)
            }
            Err(why) => {
                let pause = state.failed.as_ref().map_or(FIRST_PAUSE, |failed| LONGEST_PAUSE.min(failed.pause * 2));
                tracing::debug!(target: "leasehold", store = %self.access, why = ?why, "no connection");
                state.failed = Some(Failed { why: why.clone(), pause, until: clock::monotonic().plus(pause) });
                Err(why)
            }
        };
        drop(state);
        let _ = done.send(Some(connected));
    }

    /// Others may still wait for their answers on it; it closes with the last of them.
    fn leave(&self, number: u64) {
        let mut state = self.lock();
        if state.open.as_ref().is_some_and(|open| open.number == number) {
            state.open = None;
        }
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit, sent: &mut Sent) -> Answer {
        let mut open = match self.connection().await {
            Ok(open) => open,
            Err(NoConnection::Fault(fault)) => return Err(TransportFault::NotSent(fault)),
            Err(NoConnection::Refused(refusal)) => return Ok(refused(request, &refusal)),
        };
        let writes = request.ops.iter().any(|op| !matches!(op.op, Op::Read));
        if writes && open.leads_to_a_replica().await {
            self.leave(open.number);
            return Ok(refused(request, &Refusal::Unavailable(Fault::new(FaultKind::Server, REPLICA))));
        }
        let left = request.deadline.since(clock::monotonic());
        let mut exchange = match self.session.begin(request.id, &request.ops, left, clock::unix_ms()) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(refused(request, &Refusal::Denied(denial))),
        };
        loop {
            *sent = Sent::Perhaps(open.number);
            match send(&mut open.connection, exchange.commands()).await {
                Ok(replies) => {
                    // The name may by now lead to the new primary.
                    let mut in_doubt = replies.iter().any(is_of_a_replica);
                    let progress = exchange.replies(replies);
                    if let Progress::Done(outcomes) = &progress {
                        // After a reply that is not to its request, the next ones are not to theirs.
                        in_doubt |= outcomes.iter().any(is_nonsense);
                    }
                    if in_doubt {
                        self.leave(open.number);
                    }
                    match progress {
                        Progress::Done(outcomes) => return Ok(outcomes),
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// A replica that takes writes would grant what its primary has granted to somebody else. Whoever may not ask is
    /// trusted to have named the primary.
    async fn leads_to_a_replica(&self) -> bool {
        let ask = async || {
            let mut connection = self.connection.clone();
            let role = send(&mut connection, &[Command { args: vec![b"ROLE".to_vec()] }]).await;
            let first = role.ok().and_then(|replies| replies.into_iter().next());
            matches!(first, Some(Value::Array(parts)) if matches!(parts.first(), Some(Value::Bulk(word)) if word == b"slave"))
        };
        *self.replica.get_or_init(ask).await
    }
}

impl Link for RedisLink {
    async fn ask(self: Arc<Self>, request: Transmit) -> Answer {
        let mut sent = Sent::No;
        let answer = until(request.deadline, self.exchange(&request, &mut sent)).await;
        answer.unwrap_or_else(|| match sent {
            Sent::No => {
                let detail = "no connection in time";
                Err(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)))
            }
            Sent::Perhaps(number) => {
                // Its next reply would be the one to this request.
                self.leave(number);
                Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout)))
            }
        })
    }
}

async fn send(connection: &mut MultiplexedConnection, commands: &[Command]) -> ::redis::RedisResult<Vec<Value>> {
    if let [command] = commands {
        let reply = connection.req_packed_command(&packed(command)).await;
        return reply.map(|reply| vec![value::of(reply)]).or_else(|error| Ok(vec![value::of_error(error)?]));
    }
    let mut pipeline = ::redis::Pipeline::with_capacity(commands.len());
    for command in commands {
        pipeline.add_command(packed(command));
    }
    let replies = connection.req_packed_commands(&pipeline, 0, commands.len()).await?;
    Ok(replies.into_iter().map(value::of).collect())
}

fn packed(command: &Command) -> ::redis::Cmd {
    let bytes = command.args.iter().map(Vec::len).sum();
    let mut packed = ::redis::Cmd::with_capacity(command.args.len(), bytes);
    for arg in &command.args {
        packed.arg(arg.as_slice());
    }
    packed
}

fn refused(request: &Transmit, refusal: &Refusal) -> Vec<Outcome> {
    request.ops.iter().map(|_| Outcome::NotApplied(refusal.clone())).collect()
}

fn is_nonsense(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(fault) if fault.kind == FaultKind::Protocol)
}

fn is_of_a_replica(reply: &Value) -> bool {
    matches!(reply, Value::Error(error) if error.contains("READONLY"))
}

/// What went wrong on a connection that had been made.
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
