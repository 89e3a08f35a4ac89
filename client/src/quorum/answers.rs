//! The answers of each node of a quorum, for administration and for a client that connects.

use std::time::Duration;

use leasehold_core::member::{LossId, QuorumId};
use leasehold_core::quorum::majority;
use leasehold_core::{Config, NodeId, Quorum as Agreed};
use tracing::dispatcher::{self, Dispatch};

use super::identity::{KnownServers, register};
use super::nodes::{Named, Nodes};
use super::status::{NodeStatus, Standing};
use crate::error::{Error, ErrorKind};
use crate::exec::each;
use crate::host::sync::Arc;
use crate::transport::{LazyStore, NodeRecord, Transport};
use crate::url::StoreUrl;
use crate::url::place::Place;

/// The nodes of a quorum, as they answered when it was opened.
///
/// Its calls wait for the nodes, on the calling thread; a node that does not answer costs up to 5 s.
pub struct Quorum {
    pub(super) nodes: Nodes,
    /// In the order of the nodes.
    pub(super) answers: Vec<Answered>,
    pub(super) config: Config,
}

/// The answer of one node.
pub(super) struct Answered {
    pub(super) transport: Result<Arc<dyn Transport>, Error>,
    pub(super) found: Result<NodeRecord, Error>,
}

impl Quorum {
    /// Without a `max_ttl`, the nodes' own is taken, or else the default.
    pub(crate) fn open(
        places: Vec<Arc<dyn Place>>,
        names: Vec<String>,
        id: QuorumId,
        max_ttl: Option<Duration>,
        config: Config,
    ) -> Result<Self, Error> {
        let mut agreed = Agreed::new(id, max_ttl.unwrap_or(Agreed::MAX_TTL))?;
        // The caller's log subscriber also hears the warnings of the connecting threads.
        let log = dispatcher::get_default(Dispatch::clone);
        let opened = each(&places, |place| {
            dispatcher::with_default(&log, || {
                let transport = place.open();
                let found = transport.as_ref().map_err(Clone::clone).and_then(|transport| transport.look());
                Answered { transport, found }
            })
        });
        let panicked = || Error::internal("a thread of leasehold could not be started, or has panicked");
        let unseen = || Answered { transport: Err(panicked()), found: Err(panicked()) };
        let answers: Vec<_> = opened.into_iter().map(|answered| answered.unwrap_or_else(unseen)).collect();
        if let Some(theirs) = max_ttl_of_most(id, &answers)
            && max_ttl.is_none()
        {
            agreed = Agreed::new(id, theirs)?;
        }
        let drift = config.drift();
        let urls = places.iter().map(|place| StoreUrl::from(Arc::clone(place))).collect();
        Ok(Self { nodes: Nodes { urls, places, names, agreed, drift }, answers, config: config.with_quorum(agreed) })
    }

    /// The quorum's id: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        self.nodes.agreed.id().to_string()
    }

    /// The most that ttl and lock delay of a lock may be together.
    pub fn max_ttl(&self) -> Duration {
        self.nodes.agreed.max_ttl()
    }

    /// How long a node that has lost its memory does not vote, counted from when a client has noticed the loss.
    pub fn abstention(&self) -> Duration {
        self.nodes.abstention()
    }

    /// The number of nodes that decide.
    pub fn majority(&self) -> usize {
        self.nodes.majority()
    }

    /// The status of each node, in the order in which they were named.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.answers().map(|(node, answered)| self.nodes.status(node.name, &**node.place, &answered.found)).collect()
    }

    /// Each node with what it answered.
    pub(super) fn answers(&self) -> impl Iterator<Item = (Named<'_>, &Answered)> {
        self.nodes.iter().zip(&self.answers)
    }

    pub(crate) fn agreed(&self) -> &Agreed {
        &self.nodes.agreed
    }

    /// The settings of a client of this quorum.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The nodes that vote, and since which loss their counters are in doubt. The first attempt can count
    /// them already.
    pub(crate) fn votes(&self) -> Vec<(NodeId, Option<LossId>)> {
        let vote = |(answered, status): (&Answered, NodeStatus)| {
            let marker = answered.found.as_ref().ok()?.marker.as_ref()?;
            status.standing.votes().then(|| (status.standing == Standing::Rejoined).then_some(marker.stamp))
        };
        let votes = self.answers.iter().zip(self.status()).map(vote);
        (0..).map(NodeId::new).zip(votes).filter_map(|(node, vote)| Some((node, vote?))).collect()
    }

    /// Nodes that were not seen yet are taken in later, once they are, and only if they are none of the others.
    pub(crate) fn into_parts(self) -> (Vec<Arc<dyn Transport>>, Nodes) {
        let known = KnownServers::default();
        for (node, answered) in self.answers() {
            if let Ok(found) = &answered.found {
                // Two that are one were refused before.
                let _ = register(&known, node.name, found);
            }
        }
        let transports = self.nodes.iter().zip(self.answers).map(|(node, answered)| {
            let (opened, why) = match answered {
                Answered { transport: Ok(transport), found: Ok(_) } => return transport,
                Answered { transport: Ok(transport), found: Err(why) } => (Some(transport), why),
                Answered { transport: Err(why), .. } => (None, why),
            };
            Arc::new(LazyStore::start(Arc::clone(node.place), node.name.to_owned(), opened, &why, Arc::clone(&known)))
        });
        (transports.collect(), self.nodes)
    }
}

impl std::fmt::Debug for Quorum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quorum").field("id", &self.id()).field("nodes", &self.nodes.names).finish_non_exhaustive()
    }
}

/// The `max_ttl` that a majority of all nodes remembers of this quorum.
fn max_ttl_of_most(id: QuorumId, answers: &[Answered]) -> Option<Duration> {
    let markers = || answers.iter().filter_map(|answered| answered.found.as_ref().ok()?.marker.as_ref());
    let lengths = || markers().filter(|marker| marker.quorum == id).map(|marker| marker.max_ttl_ms);
    let of_most = |ms: &u64| lengths().filter(|other| other == ms).count() >= majority(answers.len());
    lengths().find(of_most).map(Duration::from_millis)
}

pub(super) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::StoreUnavailable, message)
}
