//! A link to a cluster: a connection to each master. Each command goes to the node that has its slot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use leasehold_core::op::{Denial, Fault, FaultKind, Outcome, Refusal};
use leasehold_core::time::time_to_say_why;
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::redis::cluster::Redirection;
use leasehold_wire::redis::{Codec, Command};
use leasehold_wire::resp::Value;
use leasehold_wire::{Exchange as _, Progress};

use super::super::access::RedisAccess;
use super::super::connection::Connection;
use super::super::link::{NoConnection, NoReply, RedisLink, Spares, awaits_replicas, is_nonsense, refused};
use super::Cluster;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::transport::connections::{Home, Link};
use crate::transport::{Answer, Answering};
use crate::url::redis::Address;

/// The most redirections of one command.
const MOST_REDIRECTIONS: u8 = 5;
/// Links to nodes that have left are dropped when there are this many more links than nodes.
const MOST_LEFT_OVER: usize = 16;

/// A connection to each node that is needed.
pub(in super::super) struct ClusterLink {
    access: Arc<RedisAccess>,
    cluster: Arc<Cluster>,
    codec: Codec,
    spares: Spares,
    home: Home,
    nodes: Mutex<HashMap<Address, Arc<RedisLink>>>,
}

/// A command under way, with the WAIT that belongs to it.
struct Errand {
    /// Its position, and the number of commands.
    at: usize,
    count: usize,
    /// The node wants an ASKING before the command.
    asking: bool,
    redirections: u8,
}

/// The replies of one node to the commands that it was sent together.
struct Visit {
    node: Address,
    errands: Vec<Errand>,
    came_back: Result<(Vec<Value>, Connection), NoReply>,
}

/// The answer to each command so far, and the connections that brought them.
struct Ledger {
    answers: Vec<Option<Result<Value, Outcome>>>,
    used: Vec<Connection>,
}

impl ClusterLink {
    pub(in super::super) fn new(
        access: Arc<RedisAccess>,
        cluster: Arc<Cluster>,
        codec: Codec,
        spares: Spares,
        home: Home,
    ) -> Self {
        Self { access, cluster, codec, spares, home, nodes: Mutex::default() }
    }

    /// The link to one node.
    pub(in super::super) fn to(&self, node: &Address) -> Arc<RedisLink> {
        let mut nodes = self.nodes.lock();
        if let Some(link) = nodes.get(node) {
            return Arc::clone(link);
        }
        let map = self.cluster.map();
        if nodes.len() > map.shards().len() + MOST_LEFT_OVER {
            nodes.retain(|address, _| map.everybody().any(|node| node == address));
        }
        let access = Arc::new(self.access.beside(node));
        let link = Arc::new(RedisLink::new(access, self.codec.clone(), self.spares, self.home.clone()));
        nodes.insert(node.clone(), Arc::clone(&link));
        link
    }

    /// Sends a request. Each operation has its own outcome: a node that hangs does not affect operations that others
    /// have answered. So it is given up a little before the deadline of the whole request.
    async fn exchange(&self, request: &Transmit) -> Answer {
        let now = clock::monotonic();
        let left = time_to_say_why(request.deadline.since(now));
        let deadline = now.plus(left);
        let mut exchange = match self.codec.begin(request.id, &request.ops, left, clock::unix_ms()) {
            Ok(exchange) => exchange,
            Err(denial) => return Ok(refused(request, &Refusal::Denied(denial))),
        };
        loop {
            let Ledger { answers, used } = self.carry(exchange.commands(), deadline).await;
            let unanswered = || Err(Outcome::Unknown(Fault::of(FaultKind::Protocol)));
            let answers = answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect();
            match exchange.answers(&mut (), answers) {
                Progress::Done(outcomes) => {
                    // After a reply that does not belong to its request, later ones do not belong to theirs.
                    if outcomes.iter().any(is_nonsense) {
                        used.iter().for_each(Connection::condemn);
                    }
                    return Ok(outcomes);
                }
                Progress::Again => {}
            }
        }
    }

    /// Sends commands that are no operations on locks, one reply each.
    pub(in super::super) async fn replies(
        &self,
        commands: &[Command],
        deadline: Monotonic,
    ) -> Result<Vec<Value>, Outcome> {
        let Ledger { answers, .. } = self.carry(commands, deadline).await;
        let unanswered = || Err(Outcome::Unknown(Fault::of(FaultKind::Protocol)));
        answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// Sends each command to the node of its slot, all nodes at once, and follows redirections.
    async fn carry(&self, commands: &[Command], deadline: Monotonic) -> Ledger {
        let mut ledger = Ledger { answers: commands.iter().map(|_| None).collect(), used: Vec::new() };
        let mut leaving: BTreeMap<Address, Vec<Errand>> = BTreeMap::new();
        for errand in errands(commands) {
            match commands[errand.at].slot().and_then(|slot| self.cluster.master_of(slot)) {
                Some(node) => leaving.entry(node).or_default().push(errand),
                None => {
                    self.cluster.refresh(&self.access);
                    let fault = Fault::new(FaultKind::Server, "no node of the cluster serves the slot of this name");
                    ledger.conclude(&errand, &Outcome::NotApplied(Refusal::Unavailable(fault)));
                }
            }
        }
        let mut visits = FuturesUnordered::new();
        loop {
            for (node, errands) in std::mem::take(&mut leaving) {
                visits.push(self.visit(node, errands, commands, deadline));
            }
            let Some(visit) = visits.next().await else { return ledger };
            self.take(visit, deadline, &mut ledger, &mut leaving);
        }
    }

    async fn visit(&self, node: Address, errands: Vec<Errand>, commands: &[Command], deadline: Monotonic) -> Visit {
        let mut taken = Vec::with_capacity(errands.len());
        for errand in &errands {
            if errand.asking {
                taken.push(Command::new(["ASKING"]));
            }
            taken.extend_from_slice(&commands[errand.at..errand.at + errand.count]);
        }
        let came_back = self.to(&node).call(&taken, deadline).await;
        Visit { node, errands, came_back }
    }

    fn take(
        &self,
        visit: Visit,
        deadline: Monotonic,
        ledger: &mut Ledger,
        leaving: &mut BTreeMap<Address, Vec<Errand>>,
    ) {
        let Visit { node, errands, came_back } = visit;
        let (replies, connection) = match came_back {
            Ok(came_back) => came_back,
            Err(why) => {
                self.cluster.refresh(&self.access);
                let outcome = outcome(&node, why);
                errands.iter().for_each(|errand| ledger.conclude(errand, &outcome));
                return;
            }
        };
        ledger.used.push(connection);
        let mut replies = replies.into_iter();
        for mut errand in errands {
            if errand.asking {
                replies.next();
            }
            let own: Vec<Value> = replies.by_ref().take(errand.count).collect();
            let redirection = own.first().and_then(|reply| Redirection::of(reply, &node));
            if let Some(Redirection::Moved { slot, to }) = &redirection {
                self.cluster.note_moved(*slot, to);
            }
            if redirection.is_some() || own.first().is_some_and(is_cluster_down) {
                self.cluster.refresh(&self.access);
            }
            match redirection {
                Some(redirection) if errand.redirections < MOST_REDIRECTIONS && clock::monotonic() < deadline => {
                    let (to, asking) = match redirection {
                        Redirection::Moved { to, .. } => (to, false),
                        Redirection::Ask { to } => (to, true),
                    };
                    errand.asking = asking;
                    errand.redirections += 1;
                    leaving.entry(to).or_default().push(errand);
                }
                Some(_) | None => {
                    for (place, reply) in ledger.answers[errand.at..errand.at + errand.count].iter_mut().zip(own) {
                        *place = Some(Ok(reply));
                    }
                }
            }
        }
    }
}

impl Ledger {
    fn conclude(&mut self, errand: &Errand, outcome: &Outcome) {
        self.answers[errand.at..errand.at + errand.count].fill_with(|| Some(Err(outcome.clone())));
    }
}

impl Link for ClusterLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        Box::pin(async move { self.exchange(&request).await })
    }

    fn is_ready(&self) -> bool {
        let map = self.cluster.map();
        let nodes = self.nodes.lock();
        let is_ready = |node| nodes.get(node).is_some_and(|link| link.is_ready());
        map.covered() > 0 && map.shards().iter().all(|shard| is_ready(&shard.master))
    }

    fn prepare(self: Arc<Self>) {
        for shard in self.cluster.map().shards() {
            self.to(&shard.master).prepare();
        }
    }
}

fn errands(commands: &[Command]) -> Vec<Errand> {
    let is_wait = |at: usize| commands.get(at).is_some_and(awaits_replicas);
    let calls = (0..commands.len()).filter(|at| !is_wait(*at));
    calls.map(|at| Errand { at, count: 1 + usize::from(is_wait(at + 1)), asking: false, redirections: 0 }).collect()
}

fn outcome(node: &Address, why: NoReply) -> Outcome {
    match why {
        NoReply::NotSent(NoConnection::Fault(fault)) => Outcome::NotApplied(Refusal::Unavailable(fault)),
        NoReply::NotSent(NoConnection::Refused(Refusal::Denied(denial))) => {
            let detail = format!("{node}: {}", denial.detail);
            Outcome::NotApplied(Refusal::Denied(Denial::new(denial.kind, &detail)))
        }
        NoReply::NotSent(NoConnection::Refused(refusal)) => Outcome::NotApplied(refusal),
        NoReply::Unknown(fault) => Outcome::Unknown(fault),
    }
}

fn is_cluster_down(reply: &Value) -> bool {
    matches!(reply, Value::Error(error) if error.starts_with("CLUSTERDOWN"))
}
