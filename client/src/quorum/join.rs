//! Waiting until all nodes vote. One client has to stay for a whole abstention, so that short-lived clients alone never bring
//! a node back.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::answers::Quorum;
use super::check::check_answers;
use super::doctor::look;
use super::nodes::Nodes;
use super::status::{NodeStatus, Standing};
use crate::client::{Backend, Client};
use crate::driver::{Caller, Driver};
use crate::error::{Error, ErrorKind};
use crate::exec::{block_on, each};
use crate::host::time::Time;
use crate::locks::lease::Lease;
use crate::transport::Transport;

/// The lock that is taken, so that nodes are asked for their votes.
const LOCK: &str = "leasehold:join";
/// The ttl of that lock. A node that could not vote is asked again after a third of it.
const TTL: Duration = Duration::from_secs(6);
/// The default timeout is two longest ttls and this: one abstention, with time for a node that is lost meanwhile, and for slow
/// answers.
const SLACK: Duration = Duration::from_secs(30);

/// The progress of a [`Quorum::join`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinProgress {
    /// The status of each node, in the order in which they were named.
    pub nodes: Vec<NodeStatus>,
    /// Why the join is not complete, in words: one reason for each node that keeps it waiting.
    pub reasons: Vec<String>,
    /// The most that it goes on, beside an answer that is under way.
    pub left: Duration,
    /// Until when that is, in milliseconds since 1970 by this machine's wall clock.
    pub until_unix_ms: u64,
}

/// The result of a [`Quorum::join`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Join {
    /// All nodes that answer vote, and they are a majority.
    Complete {
        /// The status of each node.
        nodes: Vec<NodeStatus>,
    },
    /// The time is over, and they do not.
    TimedOut {
        /// The last status of each node.
        nodes: Vec<NodeStatus>,
        /// Why it is not complete: one reason for each node that kept it waiting.
        reasons: Vec<String>,
    },
}

impl Quorum {
    /// The default timeout of [`Quorum::join`]: `2 * max_ttl + 30 s`.
    pub fn join_timeout(&self) -> Duration {
        self.max_ttl().saturating_mul(2).saturating_add(SLACK)
    }

    /// Stays until every node that answers votes, and they are a majority.
    ///
    /// A node that has lost its memory, or is new, votes once *one* client has stayed for the whole abstention and asks
    /// for its vote then. Clients that hold or want locks for long do so by the way. Where all are short-lived, such as
    /// jobs of cron, this call does it for them. It takes, and gives back, the lock `leasehold:join`; others may join
    /// at the same time. Where no node votes, as in a quorum that was never marked, all of its nodes have to answer.
    ///
    /// `timeout` is [`Quorum::join_timeout`] by default; a node that hangs can make it up to 10 s longer. `tell` is
    /// called once in each round, at least each second if all nodes answer at once.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where a node is marked otherwise, or two are one; [`ErrorKind::StoreRefused`] where one
    /// refuses. That nodes do not answer is no error: they may come.
    pub fn join(self, timeout: Option<Duration>, tell: impl FnMut(&JoinProgress)) -> Result<Join, Error> {
        check_answers(&self)?;
        let until = Time::System.monotonic().plus(timeout.unwrap_or_else(|| self.join_timeout()));
        let config = self.config.clone();
        let (transports, nodes) = self.into_parts();
        let nodes = Arc::new(nodes);
        let driver = Driver::start(config, transports, Time::System)?;
        let owner = leasehold_core::Owner::new("leasehold quorum join").ok();
        let client = Client::new(driver, owner, Backend::Quorum(Arc::clone(&nodes)));
        Joiner { client, nodes, lease: None, refused: None }.run(until, tell)
    }
}

struct Joiner {
    client: Client,
    /// The client's.
    nodes: Arc<Nodes>,
    lease: Option<Lease>,
    /// Why the lock cannot be acquired, unless that may pass.
    refused: Option<Error>,
}

impl Joiner {
    fn run(mut self, until: leasehold_core::Monotonic, mut tell: impl FnMut(&JoinProgress)) -> Result<Join, Error> {
        let max_ttl = self.nodes.agreed.max_ttl();
        let pause = (max_ttl / 8).clamp(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            let nodes = self.nodes.look_again(self.client.driver().transports());
            if self.nodes.is_complete(&nodes) {
                self.release();
                return Ok(Join::Complete { nodes });
            }
            let left = until.since(Time::System.monotonic());
            if left.is_zero() {
                self.release();
                return Ok(Join::TimedOut { reasons: self.reasons(&nodes), nodes });
            }
            self.ask(&nodes, TTL.min(max_ttl));
            let left = until.since(Time::System.monotonic());
            let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let until_unix_ms = Time::System.unix_ms().saturating_add(left_ms);
            tell(&JoinProgress { reasons: self.reasons(&nodes), nodes, left, until_unix_ms });
            thread::sleep(pause.min(left));
        }
    }

    /// Keeps the lock, whose renewals ask nodes that have no record of it for their votes; or takes it, which asks all.
    fn ask(&mut self, nodes: &[NodeStatus], ttl: Duration) {
        // Restarted with its data, a node goes on renewing, and is not asked to vote; nor is one whose record was taken
        // away on purpose.
        let unnoticed = |node: &NodeStatus| matches!(node.standing, Standing::Restarted | Standing::Unmarked);
        if self.lease.as_ref().is_some_and(Lease::is_lost) || nodes.iter().any(unnoticed) {
            self.release();
        }
        if self.lease.is_some() {
            return;
        }
        match block_on(self.client.lock(LOCK).ttl(ttl).once().by(Caller::Blocking).acquire()) {
            Ok(lease) => (self.lease, self.refused) = (Some(lease), None),
            // Another holder of it asks the nodes as well; and nodes that do not answer, or do not vote, are waited for.
            Err(error) if error.kind().is_temporary() => self.refused = None,
            Err(error) => self.refused = Some(error),
        }
    }

    /// A release that is not confirmed goes on in the background, or its record runs out soon.
    fn release(&mut self) {
        if let Some(lease) = self.lease.take() {
            let _ = block_on(lease.release_by(Caller::Blocking));
        }
    }

    fn reasons(&self, nodes: &[NodeStatus]) -> Vec<String> {
        let votes = nodes.iter().filter(|node| node.standing.votes()).count();
        let q = self.nodes.majority();
        let in_the_way = nodes.iter().filter_map(|node| {
            let said = format!("{} {}", node.name, node.meaning);
            match node.standing {
                Standing::Member | Standing::Rejoined => None,
                Standing::Unreachable if votes >= q => None,
                Standing::Unreachable if votes == 0 => {
                    Some(format!("{said}; no node votes, and a new quorum begins only when all of its nodes answer"))
                }
                Standing::Unreachable => Some(format!("{said}; {votes} nodes vote, and {q} are needed")),
                Standing::Joining
                | Standing::Restarted
                | Standing::Unmarked
                | Standing::Stranger
                | Standing::Unreadable
                | Standing::Refused => Some(said),
            }
        });
        let refused = self.refused.iter().map(|error| format!("no node can be asked for its vote: {error}"));
        in_the_way.chain(refused).collect()
    }
}

impl Nodes {
    fn look_again(&self, transports: &[Arc<dyn Transport>]) -> Vec<NodeStatus> {
        let found = each(transports, look);
        let unseen = || Err(Error::new(ErrorKind::StoreUnavailable, "a thread could not be started, or has panicked"));
        let seen = self.iter().zip(found);
        seen.map(|(node, found)| self.status(node.name, &**node.place, &found.unwrap_or_else(unseen))).collect()
    }

    fn is_complete(&self, nodes: &[NodeStatus]) -> bool {
        let votes = nodes.iter().filter(|node| node.standing.votes()).count();
        votes >= self.majority() && nodes.iter().all(|node| node.standing.votes() || !node.standing.answers())
    }
}
