//! PostgreSQL: one table, one statement for each operation.
//!
//! The statements are in `leasehold_wire::postgres`; this module sends them, each on whatever connection is idle, and
//! unnamed where a pooler may stand before the server. A server has few connections, so callers of a process share
//! those of the background, and async callers a few in their own runtimes. The core alone decides on retries. Releases wake
//! the waiters of this process, and with `listen=` those of others. Where the tables have room for them, waiters stand in the queue.

mod connection;
mod doctor;
mod here;
mod items;
mod link;
mod listener;
mod prepared;
mod turns;

use std::sync::{Arc, OnceLock, mpsc};

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal, TransportFault};
use leasehold_core::queue::{ClientId, Reserved};
use leasehold_core::{LockId, NodeConfig, Resource, Transmit};
use leasehold_wire::listing::{Page, Which};
use leasehold_wire::postgres::{Codec, Field, Notify, Settings, Statement, schema};

use self::connection::PostgresAccess;
use self::here::HereLink;
use self::link::{PostgresLink, no_rows};
use self::turns::Turns;
use super::connections::{Connections, Homes};
use super::items::Store;
use super::readiness::{CONNECT_PATIENCE, NoServer};
use super::wakeups::Wakeups;
use super::{Answer, Answering, Done, Network, NodeRecord, Pool, Queue, Transport, UnderLock, Watcher};
use crate::admin::doctor::Finding;
use crate::error::Error;
use crate::host::clock;
use crate::host::entropy::fill;
use crate::host::fork;
use crate::url::HERE;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::postgres::{PostgresPlace, PostgresUrl};
use crate::url::reach::machine;

impl Place for PostgresUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Read, watch: true, batch: 100, durability: self.durability }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Postgres::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        Some(self.place.host().map_or_else(|| HERE.to_owned(), machine))
    }
}

/// One table.
pub(crate) struct Postgres {
    connections: Arc<Connections<PostgresLink>>,
    here: Connections<HereLink>,
    codec: Codec,
    wakeups: Arc<Wakeups>,
    /// Set once the tables were seen to have queues.
    turns: Arc<OnceLock<Arc<Turns>>>,
    url: PostgresUrl,
    generation: u64,
}

impl Postgres {
    /// Looks at the table, so that a wrong url, password or right is reported at once.
    pub(crate) fn open(url: &PostgresUrl) -> Result<Self, Error> {
        let (store, access) = Self::unchecked(url)?;
        if store.marker()?.has_queues {
            store.stand_in_queue()?;
        }
        if let Some(place) = url.listen.clone() {
            let (runtime, _) =
                store.connections.background().map_err(|fault| store.to_error(&NoServer::Fault(fault)))?;
            let turns = store.turns.get().map(|turns| turns.client());
            runtime.spawn(listener::listen(access, place, Arc::clone(&store.wakeups), turns));
        }
        Ok(store)
    }

    /// Runs the statements that make the tables, and where one is of an earlier version the one that adds what it lacks.
    pub(crate) fn create(url: &PostgresUrl, statements: &[String], upgrade: &str) -> Result<(), Error> {
        let (store, _) = Self::unchecked(url)?;
        let make = |sql: &str| store.run(schema::on_disk(sql));
        // Of two that make it at the same time, one is told that the name is taken, and finds it the next time.
        let made = statements.iter().try_for_each(|sql| make(sql).or_else(|_| make(sql))).and_then(|()| {
            // It would wait for all who use the table.
            let found = store.marker()?;
            if found.has_queues && found.has_results { Ok(()) } else { make(upgrade) }
        });
        // A user who may not make it may use the one that is there.
        made.or_else(|error| store.marker().map(drop).map_err(|_| error))
    }

    /// Makes a store without contacting it.
    fn unchecked(url: &PostgresUrl) -> Result<(Self, Arc<PostgresAccess>), Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let codec = codec(url, false);
        let (access, wakeups) = (Arc::new(PostgresAccess::new(url)?), Arc::<Wakeups>::default());
        let turns = Arc::<OnceLock<_>>::default();
        let (theirs, ours, hub) = (Arc::clone(&access), codec.clone(), Arc::clone(&wakeups));
        let places = Arc::clone(&turns);
        let connections = Arc::new(Connections::new(Homes::Runtimes, move |_| {
            PostgresLink::new(Arc::clone(&theirs), ours.clone(), Arc::clone(&hub), Arc::clone(&places))
        }));
        let behind = Arc::clone(&connections);
        let here = Connections::new(Homes::Runtimes, move |_| HereLink::new(Arc::clone(&behind)));
        let generation = fork::generation();
        Ok((Self { connections, here, codec, wakeups, turns, url: url.clone(), generation }, access))
    }

    /// Lets those who wait stand in the queue.
    fn stand_in_queue(&self) -> Result<(), Error> {
        let mut client = [0; 16];
        fill(&mut client)?;
        let (codec, hub) = (codec(&self.url, true), Arc::clone(&self.wakeups));
        let turns = Turns::new(ClientId(client), codec, hub, self.url.listen.is_some());
        turns.use_connections(&self.connections);
        let _ = self.turns.set(Arc::new(turns));
        Ok(())
    }

    /// The places of this client, unless it was inherited through a fork.
    fn turns(&self) -> Option<&Arc<Turns>> {
        self.turns.get().filter(|_| self.generation == fork::generation())
    }

    /// Sends a statement that is no operation on a lock, in the background.
    fn ask(&self, statement: Statement) -> Result<Vec<Vec<Field>>, Outcome> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let asked =
            self.connections.block_on_background(move |link| async move { link.command(&statement, deadline).await });
        asked.unwrap_or_else(|fault| Err(NoServer::Fault(fault))).unwrap_or_else(|why| Err(refused(why)))
    }

    /// Runs commands without parameters, all or none.
    fn run(&self, commands: String) -> Result<(), Error> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        let ran = self.connections.block_on_background(move |link| async move { link.run(&commands, deadline).await });
        let ran = ran.unwrap_or_else(|fault| Err(NoServer::Fault(fault))).unwrap_or_else(|why| Err(refused(why)));
        ran.map(drop).map_err(|outcome| self.judged(outcome))
    }

    /// Tries to listen at that place.
    fn try_to_listen(&self, place: PostgresPlace) -> Result<(), Error> {
        let access = PostgresAccess::new(&self.url)?;
        let tried = self.connections.block_on_background(move |_| async move {
            let tried = tokio::time::timeout(CONNECT_PATIENCE, listener::try_once(&access, &place)).await;
            tried.unwrap_or_else(|_| Err(NoServer::Fault(Fault::of(FaultKind::Timeout))))
        });
        tried.unwrap_or_else(|fault| Err(NoServer::Fault(fault))).map_err(|why| self.to_error(&why))
    }

    /// One row of one statement without parameters.
    fn ask_row(&self, sql: &str) -> Result<Vec<Field>, Error> {
        let rows = self.ask(Statement { sql: sql.to_owned(), params: Vec::new() });
        let rows = rows.map_err(|outcome| self.judged(outcome))?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    fn marker(&self) -> Result<leasehold_wire::postgres::FoundMarker, Error> {
        self.codec.found(self.ask(self.codec.look())).map_err(|outcome| self.judged(outcome))
    }

    fn to_error(&self, why: &NoServer) -> Error {
        why.error(&self.url)
    }

    fn judged(&self, outcome: Outcome) -> Error {
        self.to_error(&no_rows(outcome))
    }
}

fn codec(url: &PostgresUrl, queues: bool) -> Codec {
    let notify = if url.listen.is_some() { Notify::On } else { Notify::Off };
    Codec::new(&Settings { schema: url.schema.clone(), notify, durability: url.durability, queues })
}

fn refused(why: NoServer) -> Outcome {
    match why {
        NoServer::Fault(fault) => Outcome::NotApplied(Refusal::Unavailable(fault)),
        NoServer::Refused(refusal) => Outcome::NotApplied(refusal),
    }
}

impl UnderLock for Postgres {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        if let Some(turns) = self.turns.get() {
            self.wakeups.tell(turns.client(), watcher);
        }
        self.wakeups.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.wakeups.unwatch(resource, watcher);
    }

    fn leave_queue(&self, resource: &Resource, lock: LockId) {
        if let Some(turns) = self.turns() {
            turns.leave(resource, lock);
        }
    }

    fn place_in_queue(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        self.turns()?.place(resource, lock)
    }

    fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        self.turns()?.reserved_before(resource, lock)
    }
}

impl Transport for Postgres {
    fn config(&self) -> NodeConfig {
        self.url.config()
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        let (sender, receiver) = mpsc::channel();
        self.connections.call_in_background(request.clone(), Box::new(move |answer| drop(sender.send(answer))));
        let gone = |_| Err(TransportFault::Unknown(Fault::of(FaultKind::Cancelled)));
        receiver.recv().unwrap_or_else(gone)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn close(&self) {
        self.here.close();
        self.connections.close();
    }

    fn keeps_queue(&self) -> bool {
        self.turns.get().is_some()
    }

    fn queue(&self, resource: &Resource) -> Option<Queue> {
        let answer = self.ask(self.turns()?.codec().ask_waiting(resource));
        let (waiting, since_unix_ms) = Codec::waiting(&answer)?;
        Some(Queue { waiting, since_unix_ms })
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(self)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let found = self.marker()?;
        let (run, run_refused) = match self.codec.run(self.ask(self.codec.ask_run())) {
            Ok(run) => (run, None),
            Err(outcome) => (None, Some(no_rows(outcome).to_string())),
        };
        // Two databases of one server fail together.
        let server = self.ask_row("SELECT 'postgres ' || system_identifier FROM pg_control_system()").ok();
        let server = server.and_then(|row| match row.into_iter().next() {
            Some(Field::Text(text)) => Some(text),
            _ => None,
        });
        Ok(NodeRecord {
            marker: found.marker,
            text: found.text,
            run,
            run_refused,
            table: server,
            ..NodeRecord::default()
        })
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        self.codec.marked(self.ask(self.codec.mark(found, marker))).map_err(|outcome| self.judged(outcome))
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        let page = self.codec.listed(prefix, self.ask(self.codec.list(prefix, after, which)));
        page.map_err(|outcome| self.judged(outcome))
    }

    fn clock_offset(&self) -> Option<(i64, u64)> {
        const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        // The first answer may have waited for a connection.
        self.ask_row(CLOCK).ok()?;
        let sent = clock::unix_ms();
        let row = self.ask_row(CLOCK).ok()?;
        let got = clock::unix_ms();
        let Some(Field::Int(theirs)) = row.first() else { return None };
        let ours = i64::try_from(sent / 2 + got / 2).ok()?;
        Some((theirs - ours, got.saturating_sub(sent) / 2 + 1))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(turns) = self.turns() {
            turns.end();
        }
    }
}

impl Network for Postgres {
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit> {
        self.here.call_on_caller(request)
    }

    fn call_in_background(&self, request: Transmit, done: Done) {
        self.connections.call_in_background(request, done);
    }
}
