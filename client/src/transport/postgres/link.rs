//! One pool of connections to the server, and the server's readiness.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_core::op::{Applied, Fault, FaultKind, Op, Outcome, Refusal, TransportFault};
use leasehold_core::time::time_to_say_why;
use leasehold_core::{LockId, Monotonic, Resource, Transmit};
use leasehold_wire::Progress;
use leasehold_wire::postgres::{Answer as Rows, Codec, Statement};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::connection::{Connection, PostgresAccess, Told};
use super::turns::Turns;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::transport::connections::Link;
use crate::transport::deadline::until;
use crate::transport::pauses::{LastAttempt, patience};
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer, Readiness, catch_up, in_time};
use crate::transport::wakeups::Wakeups;
use crate::transport::{Answer, Answering};

/// The most connections of one process. A server has a hundred for everybody, and each is a process there. A request has
/// one of its own while it lasts, so that one that waits for a locked row delays no other.
const MOST_CONNECTIONS: usize = 8;
/// The most requests at a time that renew nothing: renewals must not wait for callers.
const MOST_OF_CALLERS: usize = 6;
/// The most connections in the runtimes of callers: others must find some too.
const MOST_HERE: usize = 4;

/// A pool that requests share, each on a connection of its own while it lasts.
///
/// It greets the server by making the first of them.
pub(super) struct PostgresLink {
    access: Arc<PostgresAccess>,
    codec: Codec,
    wakeups: Arc<Wakeups>,
    /// Of a client that may stand in the queue.
    turns: Arc<OnceLock<Arc<Turns>>>,
    callers: Arc<Semaphore>,
    count: Arc<Count>,
    idle: Mutex<Vec<Pooled>>,
    /// The last attempt to make one more than there were.
    growth: Mutex<LastAttempt<NoServer>>,
    readiness: Arc<Readiness>,
}

pub(super) struct Pooled {
    connection: Connection,
    /// The departures at the time at which it was made.
    departures: usize,
    count: Arc<Count>,
    /// Of a connection in the background.
    _made: Option<Made>,
}

impl Pooled {
    /// Tells if it can be used: it stands, and the server was not left since it was made.
    pub(super) fn is_open(&self) -> bool {
        self.connection.is_open() && self.departures == self.count.departures.load(Ordering::Acquire)
    }
}

/// A connection that is there or is being made.
enum Made {
    /// In the background. Its end lets a waiter make another.
    Behind(Arc<Count>),
    /// In the runtime of an async caller, for as long as the background may not serve a caller more.
    Here(Arc<Count>, #[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
}

impl Made {
    fn one_more_of(link: &PostgresLink) -> Self {
        link.count.made.fetch_add(1, Ordering::AcqRel);
        Self::Behind(Arc::clone(&link.count))
    }

    /// `None` where there are enough.
    fn one_more_here(link: &PostgresLink) -> Option<Self> {
        let (here, made) = (link.count.here.load(Ordering::Acquire), link.count.made.load(Ordering::Acquire));
        let may_grow = here < MOST_HERE && here + made < MOST_CONNECTIONS;
        if !may_grow || link.growth.lock().forbids_another().is_some() {
            return None;
        }
        let turn = Arc::clone(&link.callers).try_acquire_owned().ok()?;
        link.count.here.fetch_add(1, Ordering::AcqRel);
        Some(Self::Here(Arc::clone(&link.count), turn))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        match self {
            Self::Behind(count) => {
                count.made.fetch_sub(1, Ordering::AcqRel);
                count.free.add_permits(1);
            }
            Self::Here(count, _) => _ = count.here.fetch_sub(1, Ordering::AcqRel),
        }
    }
}

struct Count {
    /// How often the server was left because it took no writes. The name may lead to another one by now.
    departures: AtomicUsize,
    made: AtomicUsize,
    /// Those in the runtimes of callers.
    here: AtomicUsize,
    /// One for each that is idle, and one for each that has ended, so that a waiter makes another.
    free: Semaphore,
}

/// A connection in use. Dropped without [`Taken::keep`] it is left, since a reply may still come.
pub(super) struct Taken {
    link: Arc<PostgresLink>,
    /// Its pool, if that is not the link's.
    here: Option<Arc<Mutex<Vec<Pooled>>>>,
    pooled: Option<Pooled>,
}

impl Taken {
    async fn query(&self, statement: &Statement) -> Rows {
        match &self.pooled {
            Some(pooled) => pooled.connection.query(statement).await,
            None => Err(Outcome::Unknown(Fault::of(FaultKind::Reset))),
        }
    }

    async fn run(&self, commands: &str) -> Result<(), Outcome> {
        match &self.pooled {
            Some(pooled) => pooled.connection.run(commands).await,
            None => Err(Outcome::Unknown(Fault::of(FaultKind::Reset))),
        }
    }

    fn keep(mut self) {
        if let Some(pooled) = self.pooled.take_if(|pooled| pooled.connection.leads_elsewhere() || !pooled.is_open()) {
            // Of several that hear it, the first one leaves for all.
            if pooled.is_open() {
                self.link.count.departures.fetch_add(1, Ordering::AcqRel);
                self.link.idle.lock().clear();
            }
            drop(pooled);
            self.link.reset_without_connections();
            return;
        }
        match (self.pooled.take(), &self.here) {
            (Some(pooled), Some(here)) => here.lock().push(pooled),
            (Some(pooled), None) => self.link.give_back(pooled),
            (None, _) => {}
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
    pub(super) fn new(
        access: Arc<PostgresAccess>,
        codec: Codec,
        wakeups: Arc<Wakeups>,
        turns: Arc<OnceLock<Arc<Turns>>>,
    ) -> Self {
        Self {
            access,
            codec,
            wakeups,
            turns,
            callers: Arc::new(Semaphore::new(MOST_OF_CALLERS)),
            count: Arc::new(Count {
                departures: AtomicUsize::new(0),
                made: AtomicUsize::new(0),
                here: AtomicUsize::new(0),
                free: Semaphore::new(0),
            }),
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
            let taken = self.ready().await?;
            let rows = taken.query(statement).await;
            taken.keep();
            Ok(rows)
        })
        .await
    }

    /// Runs commands without parameters, all or none.
    ///
    /// # Errors
    /// As [`PostgresLink::command`].
    pub(super) async fn run(self: &Arc<Self>, commands: &str, deadline: Monotonic) -> Result<Rows, NoServer> {
        in_time(deadline, async {
            let taken = self.ready().await?;
            let ran = taken.run(commands).await;
            taken.keep();
            Ok(ran.map(|()| Vec::new()))
        })
        .await
    }

    /// A connection to a server that answers.
    async fn ready(self: &Arc<Self>) -> Result<Taken, NoServer> {
        self.wait_ready(CONNECT_PATIENCE).await?;
        catch_up().await;
        self.take().await
    }

    async fn wait_ready(self: &Arc<Self>, patience: Duration) -> Greeted {
        self.readiness.wait(patience, || Arc::clone(self).greet()).await
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
            why.report(self.access.url().clone());
        }
        met
    }

    /// A connection more.
    async fn make(self: &Arc<Self>) -> Result<Pooled, NoServer> {
        let made = Made::one_more_of(self);
        let departures = self.count.departures.load(Ordering::Acquire);
        let connection = self.access.connect().await?;
        Ok(Pooled { connection, departures, count: Arc::clone(&self.count), _made: Some(made) })
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
        let (made, here) = (self.count.made.load(Ordering::Acquire), self.count.here.load(Ordering::Acquire));
        made == 0 || made + here < MOST_CONNECTIONS && self.growth.lock().forbids_another().is_none()
    }

    fn idle(&self) -> Option<Pooled> {
        let mut idle = self.idle.lock();
        idle.retain(Pooled::is_open);
        idle.pop()
    }

    fn taken(self: &Arc<Self>, pooled: Pooled) -> Taken {
        Taken { link: Arc::clone(self), here: None, pooled: Some(pooled) }
    }

    /// A connection of a caller's runtime, in use.
    pub(super) fn taken_here(self: &Arc<Self>, here: &Arc<Mutex<Vec<Pooled>>>, pooled: Pooled) -> Taken {
        Taken { link: Arc::clone(self), here: Some(Arc::clone(here)), pooled: Some(pooled) }
    }

    /// Makes a connection in the runtime that runs this, if there may be one more.
    pub(super) async fn make_here(&self) -> Option<Pooled> {
        let made = Made::one_more_here(self)?;
        let departures = self.count.departures.load(Ordering::Acquire);
        // It ends with the driver of the connection, also where that ends with its runtime.
        let told: Told = Arc::new(move |_| _ = &made);
        let connecting = self.access.connect_to(&self.access.url().place, Some(told));
        match until(clock::monotonic().plus(CONNECT_PATIENCE), connecting).await? {
            Ok(connection) => Some(Pooled { connection, departures, count: Arc::clone(&self.count), _made: None }),
            Err(why) => {
                self.growth.lock().failed(why);
                None
            }
        }
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
        let now = clock::monotonic();
        let in_time = until(now.plus(time_to_say_why(request.deadline.since(now))), async {
            self.wait_ready(patience(request)).await?;
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
        self.converse(taken, request).await
    }

    /// Performs a request on this connection.
    pub(super) async fn converse(&self, taken: Taken, request: &Transmit) -> Answer {
        let left = request.deadline.since(clock::monotonic());
        let turns = self.turns.get();
        let mut exchange = match turns {
            Some(turns) => turns.codec().begin_in_queue(&request.ops, left, turns.asker(acquisitions(request))),
            None => self.codec.begin(&request.ops, left),
        };
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
            let told = exchange.told();
            for (op, outcome) in request.ops.iter().zip(&outcomes) {
                // All who stand by for the end of the work are told.
                let has_next = told.turns.iter().any(|(resource, _)| *resource == op.resource);
                let is_free = matches!(outcome, Outcome::Applied(Applied::Released)) && !has_next;
                if is_free || matches!(outcome, Outcome::Applied(Applied::Finished)) {
                    self.wakeups.released(&op.resource);
                }
            }
            if let Some(turns) = turns {
                turns.note(told, acquisitions(request));
            }
            return Ok(outcomes);
        }
    }
}

fn acquisitions(request: &Transmit) -> impl Iterator<Item = (Resource, LockId)> {
    let acquisitions = request.ops.iter().filter(|op| matches!(op.op, Op::Acquire(_)));
    acquisitions.map(|op| (op.resource.clone(), op.lock))
}

impl Link for PostgresLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move { self.exchange(&request).await })
    }

    fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    fn prepare(self: Arc<Self>) {
        let _ = self.readiness.begin(CONNECT_PATIENCE, || Arc::clone(&self).greet());
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
