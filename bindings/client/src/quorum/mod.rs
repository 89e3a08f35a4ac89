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
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::member::QuorumId;
use leasehold_core::time::abstention;
use leasehold_core::{Config, Quorum as Agreed};

pub(crate) use self::check::{announce, check, refuse_doubles};
#[cfg(feature = "network")]
pub(crate) use self::init::request_id;
pub use self::init::{Force, Init};
pub use self::join::{Join, JoinProgress};
pub use self::status::{NodeStatus, Standing};
use crate::connect::ClientBuilder;
use crate::error::{Error, ErrorKind};
use crate::stores::Stores;
use crate::transport::{Found, Late, Transport, open};
use crate::url::StoreUrl;

/// The nodes of a quorum, as they answered when it was opened.
///
/// Its calls wait for the nodes, on the calling thread; a node that does not answer costs up to 5 s.
pub struct Quorum {
    shared: Nodes,
    nodes: Vec<Node>,
    config: Config,
}

/// One node, as far as it answered.
struct Node {
    url: StoreUrl,
    name: String,
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

/// What tells one server from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Run(String),
    File { device: u64, inode: u64 },
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

    pub(crate) fn open(urls: Vec<StoreUrl>, names: Vec<String>, agreed: Agreed, config: Config) -> Result<Self, Error> {
        let opened = each(&urls, |url| {
            let transport = open(url);
            let found = transport.as_ref().map_err(Clone::clone).and_then(|transport| transport.look());
            (transport, found)
        });
        let nodes = urls.iter().zip(&names).zip(opened).map(|((url, name), opened)| {
            let panicked = || Err(Error::config("a thread of leasehold could not be started, or has panicked"));
            let (transport, found) = opened.unwrap_or_else(|| (panicked(), Err(Error::config("it was not looked at"))));
            Node { url: url.clone(), name: name.clone(), transport, found }
        });
        let nodes = nodes.collect();
        let drift = config.drift();
        Ok(Self { shared: Nodes { urls, names, agreed, drift }, nodes, config: config.with_quorum(agreed) })
    }

    /// The quorum's id: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        self.shared.agreed.id().to_string()
    }

    /// The most that ttl and lock delay of a lock may be together.
    pub fn max_ttl(&self) -> Duration {
        self.shared.agreed.max_ttl()
    }

    /// How long a node that has lost its memory does not vote, from when a client has noticed.
    pub fn abstention(&self) -> Duration {
        self.shared.abstention()
    }

    /// How many nodes decide.
    pub fn majority(&self) -> usize {
        self.shared.majority()
    }

    /// What each node shows, in the order in which they were named.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.nodes.iter().map(|node| self.shared.status(&node.name, &node.url, &node.found)).collect()
    }

    pub(crate) fn agreed(&self) -> &Agreed {
        &self.shared.agreed
    }

    /// The settings of a client of this quorum.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Nodes that could not be opened are opened later.
    pub(crate) fn into_parts(self) -> (Vec<Arc<dyn Transport>>, Vec<StoreUrl>, Nodes) {
        let known = Known::default();
        for node in &self.nodes {
            if let (Some(identity), Ok(mut known)) = (node.identity(), known.lock()) {
                known.insert(identity, node.name.clone());
            }
        }
        let transports = self.nodes.into_iter().map(|node| match node.transport {
            Ok(transport) => transport,
            Err(error) => Arc::new(Late::start(node.url, node.name, &error, Arc::clone(&known))) as Arc<dyn Transport>,
        });
        (transports.collect(), self.shared.urls.clone(), self.shared)
    }
}

impl Node {
    fn identity(&self) -> Option<Identity> {
        self.found.as_ref().ok().and_then(|found| identity(&self.url, found))
    }
}

impl Nodes {
    fn majority(&self) -> usize {
        self.names.len() / 2 + 1
    }

    fn abstention(&self) -> Duration {
        abstention(self.agreed.max_ttl(), self.drift)
    }
}

impl std::fmt::Debug for Quorum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quorum").field("id", &self.id()).field("nodes", &self.shared.names).finish_non_exhaustive()
    }
}

/// Takes note of a server; if it is a node already, says under which name.
pub(crate) fn enroll(known: &Known, url: &StoreUrl, name: &str, found: &Found) -> Result<(), String> {
    let Some(identity) = identity(url, found) else { return Ok(()) };
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(&identity) {
        Some(other) if other != name => Err(other.clone()),
        Some(_) => Ok(()),
        None => {
            known.insert(identity, name.to_owned());
            Ok(())
        }
    }
}

fn identity(url: &StoreUrl, found: &Found) -> Option<Identity> {
    if let StoreUrl::Sqlite { path } = url {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        return Some(Identity::File { device: metadata.dev(), inode: metadata.ino() });
    }
    // Some who speak the protocol of Redis say the same nothing everywhere.
    let run = found.run.as_ref()?.as_str();
    run.bytes().any(|byte| byte != b'0').then(|| Identity::Run(run.to_owned()))
}

/// The id that was given, or else the one that follows from the nodes.
pub(crate) fn id(given: Option<&str>, names: &[String]) -> Result<QuorumId, Error> {
    const MAX_BYTES: usize = 256;
    let majority = names.len() / 2 + 1;
    let Some(text) = given else {
        return Ok(QuorumId::of(&names.iter().map(String::as_str).collect::<Vec<_>>(), majority));
    };
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(Error::config(format!("quorum_id has {} bytes; it must have 1 to {MAX_BYTES}", text.len())));
    }
    Ok(leasehold_core::member::Stamp::parse(text).map_or_else(|| QuorumId::of(&[text], majority), |id| QuorumId(id.0)))
}

/// Does the same to all nodes at once. `None` where a thread could not be started, or has panicked.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> = items
            .iter()
            .map(|item| thread::Builder::new().name("leasehold-offload".into()).spawn_scoped(scope, move || work(item)))
            .collect();
        started.into_iter().map(|thread| thread.ok().and_then(|thread| thread.join().ok())).collect()
    })
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::StoreUnavailable, message)
}
