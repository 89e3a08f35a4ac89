//! The nodes of a quorum: whether they are different ones, what they remember of their membership, and marking them.
//!
//! A client looks at all of this when it connects, and refuses what cannot work. [`Quorum`] is the same look without a
//! client, for administration: `leasehold quorum init`, `status` and `join` are made of it.

mod check;
mod doctor;
mod init;
mod join;
mod status;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::member::{LossId, QuorumId, RunId};
use leasehold_core::quorum::majority;
use leasehold_core::time::abstention;
use leasehold_core::{Config, NodeId, Quorum as Agreed};
use tracing::dispatcher::{self, Dispatch};

pub(crate) use self::check::{announce, check, refuse_doubles};
#[cfg(any(feature = "redis", feature = "http"))]
pub(crate) use self::init::request_id;
pub use self::init::{Force, Init};
pub use self::join::{Join, JoinProgress};
pub use self::status::{NodeStatus, Standing};
use crate::connect::ClientBuilder;
use crate::error::{Error, ErrorKind};
use crate::exec::each;
use crate::stores::Stores;
use crate::sync::Mutex;
use crate::transport::{FileId, Found, LazyStore, Transport, open};
use crate::url::StoreUrl;

/// The nodes of a quorum, as they answered when it was opened.
///
/// Its calls wait for the nodes, on the calling thread; a node that does not answer costs up to 5 s.
pub struct Quorum {
    nodes: Nodes,
    /// In the order of the nodes.
    answers: Vec<Answered>,
    config: Config,
}

/// What one node answered.
struct Answered {
    transport: Result<Arc<dyn Transport>, Error>,
    found: Result<Found, Error>,
}

/// What a client keeps of its quorum.
pub(crate) struct Nodes {
    urls: Vec<StoreUrl>,
    names: Vec<String>,
    agreed: Agreed,
    drift: Drift,
}

/// One node, as it is named.
#[derive(Clone, Copy)]
struct Named<'a> {
    url: &'a StoreUrl,
    name: &'a str,
}

/// What tells one server from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Run(RunId),
    File(FileId),
    Table(String),
}

/// Which servers are nodes already.
pub(crate) type Known = Arc<Mutex<HashMap<Identity, String>>>;

impl Quorum {
    /// Looks at all nodes, at the same time. Of `settings`, those of quorums count. That a node does not answer is no
    /// error here: [`Quorum::status`] tells.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for urls that cannot be read, fewer than two of them, the same one twice, and settings
    /// outside their bounds.
    pub fn connect(settings: &ClientBuilder, stores: impl Stores) -> Result<Self, Error> {
        let urls = stores.urls()?;
        if let [only] = urls.as_slice() {
            return Err(Error::config(format!(
                "{only} alone is no quorum, and needs no marks: name all nodes, three or five of them"
            )));
        }
        settings.quorum(urls)
    }

    /// Without a `max_ttl`, the nodes' own is taken, or else the default.
    pub(crate) fn open(
        urls: Vec<StoreUrl>,
        names: Vec<String>,
        id: QuorumId,
        max_ttl: Option<Duration>,
        config: Config,
    ) -> Result<Self, Error> {
        let mut agreed = Agreed::new(id, max_ttl.unwrap_or(Agreed::MAX_TTL))?;
        // The caller's log subscriber also hears the warnings of the connecting threads.
        let log = dispatcher::get_default(Dispatch::clone);
        let opened = each(&urls, |url| {
            dispatcher::with_default(&log, || {
                let transport = open(url);
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
        Ok(Self { nodes: Nodes { urls, names, agreed, drift }, answers, config: config.with_quorum(agreed) })
    }

    /// The quorum's id: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        self.nodes.agreed.id().to_string()
    }

    /// The most that ttl and lock delay of a lock may be together.
    pub fn max_ttl(&self) -> Duration {
        self.nodes.agreed.max_ttl()
    }

    /// How long a node that has lost its memory does not vote, from when a client has noticed.
    pub fn abstention(&self) -> Duration {
        self.nodes.abstention()
    }

    /// How many nodes decide.
    pub fn majority(&self) -> usize {
        self.nodes.majority()
    }

    /// What each node shows, in the order in which they were named.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.answers().map(|(node, answered)| self.nodes.status(node.name, node.url, &answered.found)).collect()
    }

    /// Each node with what it answered.
    fn answers(&self) -> impl Iterator<Item = (Named<'_>, &Answered)> {
        self.nodes.iter().zip(&self.answers)
    }

    pub(crate) fn agreed(&self) -> &Agreed {
        &self.nodes.agreed
    }

    /// The settings of a client of this quorum.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The nodes that vote, and since which loss their counters are in doubt. What was looked at before an attempt began,
    /// already that attempt can count.
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
        let known = Known::default();
        for (node, answered) in self.answers() {
            if let Ok(found) = &answered.found {
                // Two that are one were refused before.
                let _ = enroll(&known, node.name, found);
            }
        }
        let transports = self.nodes.iter().zip(self.answers).map(|(node, answered)| {
            let (opened, why) = match answered {
                Answered { transport: Ok(transport), found: Ok(_) } => return transport,
                Answered { transport: Ok(transport), found: Err(why) } => (Some(transport), why),
                Answered { transport: Err(why), .. } => (None, why),
            };
            Arc::new(LazyStore::start(node.url.clone(), node.name.to_owned(), opened, &why, Arc::clone(&known)))
        });
        (transports.collect(), self.nodes)
    }
}

impl Nodes {
    /// In the order in which they were named.
    pub(crate) fn urls(&self) -> &[StoreUrl] {
        &self.urls
    }

    /// What a node is called in messages.
    pub(crate) fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("?", String::as_str)
    }

    fn iter(&self) -> impl Iterator<Item = Named<'_>> {
        self.urls.iter().zip(&self.names).map(|(url, name)| Named { url, name })
    }

    fn majority(&self) -> usize {
        majority(self.names.len())
    }

    fn abstention(&self) -> Duration {
        abstention(self.agreed.max_ttl(), self.drift)
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

/// Refuses a store that decides together with others. One that is too busy to say goes on being asked for locks.
///
/// # Errors
/// [`ErrorKind::Config`] where it has the marker of a quorum.
pub(crate) fn refuse_node(url: &StoreUrl, store: &dyn Transport) -> Result<(), Error> {
    let found = match store.look() {
        Ok(found) => found,
        Err(why) => {
            // Who may not read the marker could not use a node of a quorum either.
            if why.kind() == ErrorKind::StoreUnavailable {
                let store = url.to_string();
                tracing::warn!(name: "quorum.marker_unread", target: "leasehold", store, "whether {store} is a node of a quorum, which must not be used alone, could not be seen: {why}");
            }
            return Ok(());
        }
    };
    if found.text.is_empty() {
        return Ok(());
    }
    let of = found.marker.map(|marker| format!(" of the quorum {}", marker.quorum)).unwrap_or_default();
    Err(Error::config(format!(
        "{url} is a node{of}, and named alone here: its lock would not exclude those of the quorum. Name all nodes of the \
         quorum, as its other clients do; if the quorum is no more, remove the node's marker: docs/quorum.md tells how"
    )))
}

/// Takes note of a server; if it is a node already, says under which name.
pub(crate) fn enroll(known: &Known, name: &str, found: &Found) -> Result<(), String> {
    let Some(identity) = identity(found) else { return Ok(()) };
    let mut known = known.lock();
    let other = known.entry(identity).or_insert_with(|| name.to_owned());
    if other == name { Ok(()) } else { Err(other.clone()) }
}

fn identity(found: &Found) -> Option<Identity> {
    if let Some(file) = found.file {
        return Some(Identity::File(file));
    }
    if let Some(table) = &found.table {
        return Some(Identity::Table(table.clone()));
    }
    // Some who speak the protocol of Redis say the same nothing everywhere.
    let run = found.run.as_ref().filter(|run| run.as_str().bytes().any(|byte| byte != b'0'))?;
    Some(Identity::Run(run.clone()))
}

/// The id that was given, or else the one that follows from the nodes.
pub(crate) fn id(given: Option<&str>, names: &[String]) -> Result<QuorumId, Error> {
    const MAX_BYTES: usize = 256;
    let majority = majority(names.len());
    let Some(text) = given else {
        return Ok(QuorumId::of(&names.iter().map(String::as_str).collect::<Vec<_>>(), majority));
    };
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(Error::config(format!("quorum_id has {} bytes; it must have 1 to {MAX_BYTES}", text.len())));
    }
    Ok(leasehold_core::member::LossId::parse(text).map_or_else(|| QuorumId::of(&[text], majority), |id| QuorumId(id.0)))
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::StoreUnavailable, message)
}
