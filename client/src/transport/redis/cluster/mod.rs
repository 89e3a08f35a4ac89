//! The map of a Redis Cluster, shared by all connections: the node of each slot, and later changes.
//!
//! A node that is asked for a slot of another one redirects the client (MOVED). The redirection counts at once; the
//! whole map is then read again, in the background and not too often.

pub(super) mod link;
mod listing;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_wire::redis::cluster::{Map, epoch};
use leasehold_wire::redis::{Command, refusal};
use leasehold_wire::resp::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::Level;

use super::access::RedisAccess;
use super::failovers::Failovers;
use super::link::NoConnection;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::reports;
use crate::transport::info::printable;
use crate::transport::pauses::Pauses;
use crate::url::redis::Address;

/// The time limit for each node, connecting included; then the next one is asked.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pauses between two readings.
const PAUSES: Pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(1));

/// One cluster.
pub(super) struct Cluster {
    seeds: Vec<Address>,
    learned: watch::Sender<Arc<Map>>,
    /// The epoch of that map, by which older maps are recognised.
    epoch: AtomicU64,
    /// Redirections of single slots since the map was read.
    moved: Mutex<HashMap<u16, Address>>,
    pub(super) failovers: Failovers,
    /// Spreads questions that any node can answer over all of them.
    turn: AtomicUsize,
    reading: Mutex<Reading>,
    /// The runtime in which the map is read.
    background: OnceLock<Handle>,
}

struct Reading {
    is_under_way: bool,
    pauses: Pauses,
    not_before: Monotonic,
}

/// Marks a reading as under way until it is dropped.
struct Reader(Arc<Cluster>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.reading.lock().is_under_way = false;
    }
}

impl Cluster {
    pub(super) fn new(seeds: Vec<Address>) -> Self {
        let (learned, _) = watch::channel(Arc::default());
        let reading = Reading { is_under_way: false, pauses: PAUSES, not_before: clock::monotonic() };
        Self {
            seeds,
            learned,
            epoch: AtomicU64::new(0),
            moved: Mutex::default(),
            failovers: Failovers::default(),
            turn: AtomicUsize::new(0),
            reading: Mutex::new(reading),
            background: OnceLock::new(),
        }
    }

    /// The latest map.
    pub(super) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.learned.borrow())
    }

    /// The node that serves a slot, if it is known.
    pub(super) fn master_of(&self, slot: u16) -> Option<Address> {
        let moved = self.moved.lock().get(&slot).cloned();
        moved.or_else(|| self.map().master_of(slot).cloned())
    }

    /// Each node once, starting with another one each time; nodes that only the url names come last.
    pub(super) fn everybody(&self) -> Vec<Address> {
        let map = self.map();
        let mut all: Vec<Address> = map.everybody().cloned().collect();
        if !all.is_empty() {
            let first = self.turn.fetch_add(1, Ordering::Relaxed) % all.len();
            all.rotate_left(first);
        }
        for seed in &self.seeds {
            if !all.contains(seed) {
                all.push(seed.clone());
            }
        }
        all
    }

    /// Waits until a node has left the cluster; returns at once if it is not part of it.
    pub(super) async fn forgets(&self, address: &Address) {
        let mut learned = self.learned.subscribe();
        let is_gone = |map: &Arc<Map>| !map.everybody().any(|node| node == address);
        if learned.wait_for(is_gone).await.is_err() {
            std::future::pending().await
        }
    }

    /// Notes the node that serves a slot now.
    fn note_moved(&self, slot: u16, to: &Address) {
        self.moved.lock().insert(slot, to.clone());
    }

    /// Reads the map for the first time, in the runtime that will read it from now on.
    ///
    /// # Errors
    /// No node answers, or none is of a cluster; the message has each answer.
    pub(super) async fn begin(&self, access: &RedisAccess) -> Result<(), NoConnection> {
        let _ = self.background.set(Handle::current());
        self.read(access).await
    }

    /// Starts to read the map again, unless that is under way.
    pub(super) fn refresh(self: &Arc<Self>, access: &Arc<RedisAccess>) {
        let Some(background) = self.background.get() else { return };
        let rest = {
            let mut reading = self.reading.lock();
            if reading.is_under_way {
                return;
            }
            reading.is_under_way = true;
            reading.not_before.since(clock::monotonic())
        };
        let (reader, access) = (Reader(Arc::clone(self)), Arc::clone(access));
        background.spawn(async move {
            sleep(rest).await;
            let cluster = &reader.0;
            let read = cluster.read(&access).await;
            let mut reading = cluster.reading.lock();
            if read.is_ok() {
                reading.pauses = PAUSES;
            }
            reading.not_before = clock::monotonic().plus(reading.pauses.next());
            drop(reading);
            if let Err(why) = read {
                reports::queue(Level::DEBUG, move || {
                    tracing::debug!(target: "leasehold", store = %access, %why, "the cluster cannot be seen");
                });
            }
        });
    }

    /// Reads the map now.
    ///
    /// # Errors
    /// No node answers; the message has each answer.
    pub(super) async fn read(&self, access: &RedisAccess) -> Result<(), NoConnection> {
        let (mut said, mut refused, mut behind) = (Vec::new(), None, None::<NodeView>);
        for node in self.everybody() {
            match ask(&access.beside(&node), &node).await {
                Ok(view) if view.map.covered() == 0 => {
                    said.push(format!("{node}: it knows no node with slots"));
                }
                // It may have lost contact to the others, and still have an older map.
                Ok(view) if view.epoch.is_some_and(|epoch| epoch < self.epoch.load(Ordering::Relaxed)) => {
                    if behind.as_ref().is_none_or(|other| other.epoch < view.epoch) {
                        behind = Some(view);
                    }
                }
                Ok(view) => {
                    self.learn(view);
                    return Ok(());
                }
                Err(NoConnection::Fault(fault)) => said.push(fault.to_string()),
                Err(NoConnection::Refused(refusal)) => refused = refused.or(Some(refusal)),
            }
        }
        // There is no newer map: nodes with one are unreachable, or the cluster was created again.
        if let Some(view) = behind {
            self.learn(view);
            return Ok(());
        }
        Err(match refused {
            Some(refusal) => NoConnection::Refused(refusal),
            None => {
                let detail = format!("no node of the cluster describes it: {}", said.join("; "));
                NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
            }
        })
    }

    fn learn(&self, view: NodeView) {
        let map = Arc::new(view.map);
        let epoch = view.epoch.unwrap_or(0);
        let is_older = epoch < self.epoch.swap(epoch, Ordering::Relaxed);
        self.moved.lock().clear();
        let before = self.learned.send_replace(Arc::clone(&map));
        for (from, to) in map.failovers_since(&before) {
            if !is_older {
                self.failovers.note(&from, &to);
            }
        }
    }
}

/// One node's view of the cluster.
struct NodeView {
    map: Map,
    /// `None` if the user may not ask.
    epoch: Option<u64>,
}

async fn ask(access: &RedisAccess, node: &Address) -> Result<NodeView, NoConnection> {
    let fault = |what: &str| {
        let detail = format!("{node}: {}", printable(what));
        NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
    };
    let asked = async {
        let commands = ["SLOTS", "INFO"].map(|what| Command::new(["CLUSTER", what]));
        let replies = access.ask_there(&commands).await.map_err(|why| match why {
            NoConnection::Fault(broken) if broken.kind != FaultKind::Unreachable => fault(&broken.to_string()),
            why @ (NoConnection::Fault(_) | NoConnection::Refused(_)) => why,
        })?;
        <[Value; 2]>::try_from(replies).map_err(|_| fault("another number of replies than commands"))
    };
    let [slots, info] = timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(fault("no answer in time")))?;
    let Value::Error(error) = &slots else {
        let map = Map::read(&slots, node).map_err(fault)?;
        return Ok(NodeView { map, epoch: epoch(&info) });
    };
    match error {
        error if error.contains("cluster support disabled") => {
            let detail = format!("{node} is not a node of a Redis Cluster; write redis://{node}");
            Err(NoConnection::Refused(Refusal::Denied(Denial::new(DenialKind::Other, &detail))))
        }
        error if error.starts_with("NOPERM") => {
            let detail = format!("the user needs +cluster|slots ({node} said: {})", printable(error));
            Err(NoConnection::Refused(Refusal::Denied(Denial::new(DenialKind::Permission, &detail))))
        }
        error => Err(refusal(error).map_or_else(|| fault(error), NoConnection::Refused)),
    }
}
