//! Injected faults: the kind, the target and the time of each.

use std::fmt;

use serde_json::json;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// SIGSTOP to a worker, and SIGCONT later.
    Stop,
    /// SIGKILL to a worker, and another one in its place.
    Kill,
    /// SIGSTOP to a server, and SIGCONT later.
    Freeze,
    /// SIGKILL to a server, which comes back with its data.
    Crash,
    /// SIGKILL to a server, which comes back with nothing.
    Empty,
    /// SIGKILL to the leader of an etcd, which comes back with its data.
    Leader,
    /// SIGKILL to a pooler, which comes back.
    Pooler,
    /// A server ends all sessions of its clients.
    Terminate,
    /// Another process holds the write lock of the SQLite file for a while.
    Busy,
    /// Replies are delayed.
    Delay,
    /// Replies arrive in pieces.
    Split,
    /// A request is performed, and its reply is lost.
    LoseReply,
    /// A request is performed, and the connection is reset instead of its reply.
    Reset,
    /// Nothing passes, and connections stay open.
    BlackHole,
    /// Connections are reset, and new ones refused.
    Refuse,
    /// The link of the network namespace is down.
    Cut,
}

impl Kind {
    /// Its name in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Stop => "worker stopped",
            Self::Kill => "worker killed",
            Self::Freeze => "server stopped",
            Self::Crash => "server killed, back with its data",
            Self::Empty => "server killed, back empty",
            Self::Leader => "leader killed, back with its data",
            Self::Pooler => "pooler killed and back",
            Self::Terminate => "sessions terminated",
            Self::Busy => "file busy",
            Self::Delay => "replies delayed",
            Self::Split => "replies split",
            Self::LoseReply => "replies lost",
            Self::Reset => "reset after the request",
            Self::BlackHole => "black hole",
            Self::Refuse => "connections refused",
            Self::Cut => "network cut",
        }
    }

    /// The kinds that affect the path between workers and stores.
    pub const PATH: [Self; 6] = [Self::Delay, Self::Split, Self::LoseReply, Self::Reset, Self::BlackHole, Self::Refuse];

    /// True for faults of a worker, false for faults of its store and network.
    pub const fn is_of_a_worker(self) -> bool {
        matches!(self, Self::Stop | Self::Kill)
    }
}

/// The target of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A worker, by name.
    Worker(String),
    /// A node of the store.
    Store(usize),
    /// The path of one group of workers to one node.
    Path {
        /// The group of workers.
        group: usize,
        /// The node.
        node: usize,
    },
    /// The network of one group of workers.
    Network(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(name) => f.write_str(name),
            Self::Store(node) => write!(f, "store {}", node + 1),
            Self::Path { group, node } => write!(f, "path {} to store {}", group + 1, node + 1),
            Self::Network(group) => write!(f, "network {}", group + 1),
        }
    }
}

/// An injected fault. Times are the machine's monotonic clock in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: Kind,
    /// The target.
    pub target: Target,
    /// The time just before it began.
    pub from: u64,
    /// The time just after it was undone; for a kill, when the process was gone.
    pub to: u64,
    /// True if it had an effect: a reply is lost only if there is one.
    pub has_hit: bool,
}

impl Fault {
    /// The line of `faults.jsonl`.
    pub fn line(&self) -> String {
        let (what, target) = (self.kind.title(), self.target.to_string());
        format!(
            "{}\n",
            json!({ "at": self.from, "until": self.to, "what": what, "target": target, "hit": self.has_hit })
        )
    }

    /// True if it may have affected a worker of this group between these instants.
    pub fn reaches(&self, worker: &str, group: usize, from: u64, to: u64) -> bool {
        let is_near = match &self.target {
            Target::Worker(name) => name == worker,
            Target::Store(_) => true,
            Target::Path { group: whose, .. } | Target::Network(whose) => *whose == group,
        };
        is_near && self.from <= to && from <= self.to
    }
}
