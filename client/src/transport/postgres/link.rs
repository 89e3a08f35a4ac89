//! One pool of connections to the server, and the server's readiness.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_core::op::{Applied, Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::postgres::{Answer as Rows, Progress, Session, Statement};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Level;

use super::connection::{Access, Connection};
use crate::clock;
use crate::reports;
use crate::sync::Mutex;
use crate::transport::connections::{Link, until};
use crate::transport::pauses::LastAttempt;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, catch_up, in_time};
use crate::transport::wakeups::Wakeups;
use crate::transport::{Answer, Answering};

/// The most connections of one process. A server has a hundred for everybody, and each is a process there. A request has
/// one of its own while it lasts, so that one that waits for a locked row delays no other.
const MOST_CONNECTIONS: usize = 8;
/// The most requests at a time that renew nothing: renewals must not wait for callers.
const MOST_OF_CALLERS: usize = 6;

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the server by making the first of them.
pub(super) struct PostgresLink {
    access: Arc<Access>,
    session: Session,
    wakeups: Arc<Wakeups>,
    callers: Semaphore,
    count: Arc<Count>,
    idle: Mutex<Vec<Pooled>>,
    /// The last attempt to make one more than there were.
    growth: Mutex<LastAttempt<NoServer>>,
    readiness: Arc<Readiness>,
}

struct Pooled {
    connection: Connection,
    _made: Made,
}

/// A connection that is there or is being made. Its end lets a waiter make another.
struct Made(Arc<Count>);

impl Made {
    fn one_more_of(link: &PostgresLink) -> Self {
        link.count.made.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&link.count))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.0.made.fetch_sub(1, Ordering::AcqRel);
        self.0.free.add_permits(1);
    }
}

struct Count {
    made: AtomicUsize,
    /// One for each that is idle, and one for each that has ended, so that a waiter makes another.
    free: Semaphore,
}

/// A connection in use. Dropped without [`Taken::keep`] it is left, since a reply may still come.
struct Taken {
    link: Arc<PostgresLink>,
    pooled: Option<Pooled>,
}

impl Taken {
    async fn query(&self, statement: &Statement) -> Rows {
        match &self.pooled {
            Some(pooled) => pooled.connection.query(statement).await,
            None => Err(Outcome::Unknown(Fault::of(FaultKind::Reset))),
        }
    }

    fn keep(mut self) {
        if let Some(pooled) = self.pooled.take() {
            self.link.give_back(pooled);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            pooled.connection.leave();
            drop(pooled);
            self.link.reset_without_connections();
        }
    }
}

impl PostgresLink {
    pub(super) fn new(access: Arc<Access>, session: Session, wakeups: Arc<Wakeups>) -> Self {
        Self {
            access,
            session,
            wakeups,
            callers: Semaphore::new(MOST_OF_CALLERS),
            count: Arc::new(Count { made: AtomicUsize::new(0), free: Semaphore::new(0) }),
            idle: Mutex::default(),
            growth: Mutex::default(),
            readiness: Arc::default(),
        }
    }

    /// Sends a statement that is no operation on a lock.
    ///
    /// # Errors
    /// No server, no connection or no answer by `deadline`.
    pub(super) async fn command(
        self: &Arc<Self>,
        statement: &Statement,
        deadline: Monotonic,
    ) -> Result<Rows, NoServer> {
        in_time(deadline, async {
            self.wait_ready().await?;
            catch_up().await;
            let taken = self.take().await?;
            let rows = taken.query(statement).await;
            taken.keep();
            Ok(rows)
        })
        .await
    }

    async fn wait_ready(self: &Arc<Self>) -> Greeted {
        self.readiness.wait(|| Arc::clone(self).greet()).await
    }

    async fn greet(self: Arc<Self>) -> Greeted {
        let met = match tokio::time::timeout(CONNECT_PATIENCE, self.make()).await {
            Ok(Ok(pooled)) => {
                self.give_back(pooled);
                Ok(())
            }
            Ok(Err(why)) => Err(why),
            Err(_) => {
                let detail = format!("{}: no connection within {CONNECT_PATIENCE:?}", self.access.url());
                Err(NoServer::Fault(Fault::new(FaultKind::Timeout, &detail)))
            }
        };
        if let Err(why) = &met {
            let (link, why) = (Arc::clone(&self), why.clone());
            reports::queue(Level::DEBUG, move || {
                tracing::debug!(target: "leasehold", store = %link.access.url(), why = %why, "no answer");
            });
        }
        met
    }

    /// A connection more.
    async fn make(self: &Arc<Self>) -> Result<Pooled, NoServer> {
        let made = Made::one_more_of(self);
        let connection = self.access.connect().await?;
        Ok(Pooled { connection, _made: made })
    }

    /// A connection of its own for a request.
    async fn take(self: &Arc<Self>) -> Result<Taken, NoServer> {
        loop {
            let is_told = self.count.free.try_acquire().map(SemaphorePermit::forget).is_ok();
            if let Some(pooled) = self.idle() {
                return Ok(self.taken(pooled));
            }
            if is_told {
                continue;
            }
            if self.may_grow() {
                match self.make().await {
                    Ok(pooled) => {
                        self.growth.lock().succeeded();
                        return Ok(self.taken(pooled));
                    }
                    Err(why) if self.count.made.load(Ordering::Acquire) == 0 => {
                        self.readiness.reset();
                        return Err(why);
                    }
                    // The server may have none left: those that are there will do.
                    Err(why) => {
                        self.growth.lock().failed(why);
                        continue;
                    }
                }
            }
            // The semaphore is never closed. It is taken in the next turn.
            drop(self.count.free.acquire().await);
        }
    }

    fn may_grow(&self) -> bool {
        let made = self.count.made.load(Ordering::Acquire);
        made == 0 || made < MOST_CONNECTIONS && self.growth.lock().forbids_another().is_none()
    }

    fn idle(&self) -> Option<Pooled> {
        let mut idle = self.idle.lock();
        idle.retain(|pooled| pooled.connection.is_open());
        idle.pop()
    }

    fn taken(self: &Arc<Self>, pooled: Pooled) -> Taken {
        Taken { link: Arc::clone(self), pooled: Some(pooled) }
    }

    fn give_back(&self, pooled: Pooled) {
        self.idle.lock().push(pooled);
        self.count.free.add_permits(1);
    }

    /// Without any connection, the next request waits for a greeting, whose failures have pauses between them.
    fn reset_without_connections(&self) {
        if self.count.made.load(Ordering::Acquire) == 0 {
            self.readiness.reset();
        }
    }

    async fn exchange(self: &Arc<Self>, request: &Transmit) -> Answer {
        let renews = request.ops.iter().any(|op| matches!(op.op, Op::Renew(_)));
        let in_time = until(request.deadline, async {
            self.wait_ready().await?;
            // The semaphore is never closed.
            let turn = if renews { None } else { self.callers.acquire().await.ok() };
            catch_up().await;
            Ok::<_, NoServer>((self.take().await?, turn))
        });
        let (taken, _turn) = match in_time.await {
            Some(Ok(taken)) => taken,
            Some(Err(why)) => return why.answer(request),
            None => {
                let detail = "no connection to the server in time";
                return Err(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)));
            }
        };
        let mut exchange = self.session.begin(&request.ops, request.deadline.since(clock::monotonic()));
        loop {
            let answer = until(request.deadline, taken.query(exchange.statement())).await;
            let answer = answer.unwrap_or_else(|| Err(Outcome::Unknown(Fault::of(FaultKind::Timeout))));
            let is_in_doubt = matches!(answer, Err(Outcome::Unknown(_)));
            let Progress::Done(outcomes) = exchange.answer(answer) else { continue };
            match exchange.afterwards() {
                _ if is_in_doubt => drop(taken),
                Some(statement) => drop(tokio::spawn(async move {
                    let answer = tokio::time::timeout(CONNECT_PATIENCE, taken.query(&statement)).await;
                    if answer.is_ok() {
                        taken.keep();
                    }
                })),
                None => taken.keep(),
            }
            for (op, outcome) in request.ops.iter().zip(&outcomes) {
                if matches!(outcome, Outcome::Applied(Applied::Released | Applied::Finished)) {
                    self.wakeups.released(&op.resource);
                }
            }
            return Ok(outcomes);
        }
    }
}

impl Link for PostgresLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move { self.exchange(&request).await })
    }

    fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.readiness.begin(|| Arc::clone(&self).greet());
    }
}

/// The reason why a statement that is no operation has no rows.
pub(super) fn no_rows(outcome: Outcome) -> NoServer {
    match outcome {
        Outcome::NotApplied(refusal) => NoServer::Refused(refusal),
        Outcome::Unknown(fault) => NoServer::Refused(Refusal::Unavailable(fault)),
        Outcome::Applied(_) => NoServer::Fault(Fault::of(FaultKind::Protocol)),
    }
}
