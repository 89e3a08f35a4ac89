//! Many locks at once, over requests that are ready to be sent: a host needs an HTTP client or a connection, and a clock.
//!
//! This is the core's own [`Client`](leasehold_core::Client) with a codec for each node. Where that one tells its host to perform
//! operations, this one hands out requests in the format of the node's [`Store`], and understands the responses:
//!
//! ```
//! use leasehold_core::config::LockOptions;
//! use leasehold_wire::client::{
//!     Access, WireClient, Credentials, BearerToken, HttpResponse, Output, Plaintext, RedisHttpStore, Response, Store,
//! };
//! use leasehold_wire::rest::Dialect;
//! use leasehold_core::{Config, LockId, Monotonic, NodeConfig, Now, Resource};
//!
//! let store = RedisHttpStore {
//!     dialect: Dialect::Upstash,
//!     url: "https://example.upstash.io".into(),
//!     access: Access::WithCredentials,
//!     retention: leasehold_core::member::RETENTION,
//!     plaintext: Plaintext::Refused,
//! };
//! let now = Now { monotonic: Monotonic::from_ns(1_000_000_000), unix_ms: 1_700_000_000_000 };
//! let config = Config::new(vec![NodeConfig::default()])?;
//! let mut client = WireClient::new(config, vec![Store::RedisHttp(store)], [7; 32], now)?;
//! client.acquire(LockId::new(1), Resource::new("invoice/42")?, LockOptions::builder().build()?, &[8; 16], now)?;
//! let mut tokens = Vec::new();
//! loop {
//!     match client.poll_output(now) {
//!         Output::HttpRequest(request) => {
//!             // A real host sends it now, and hands in what comes back, or that nothing came.
//!             assert_eq!((request.method, request.url.as_str()), ("POST", "https://example.upstash.io/"));
//!             let body = br#"{"result":["granted","1700000000000","0"]}"#.to_vec();
//!             let response = HttpResponse { status: 200, headers: Vec::new(), body };
//!             client.handle_response(request.id, Response::Http(response), now);
//!         }
//!         Output::RedisCommands(_) | Output::Statement(_) => unreachable!("the store is behind HTTP"),
//!         Output::Core(leasehold_core::Output::NeedCredentials { node }) => {
//!             let token = Credentials::Token(BearerToken { token: "from-a-vault".into(), expires_unix_ms: None });
//!             client.set_credentials(node, token, now)?;
//!         }
//!         Output::Core(leasehold_core::Output::Event(leasehold_core::Event::Acquired { token, .. })) => tokens.push(token),
//!         Output::Core(leasehold_core::Output::WakeAt(_)) => break,
//!         Output::Core(_) => {}
//!     }
//! }
//! assert_eq!(tokens.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One request of the core may take several to the server: a script that it does not know is sent whole, a row of DynamoDB
//! is read before it is written, a signature is made again with other credentials or by the server's clock. All of them
//! keep the deadline of the first. Each has an id of its own, never used again, so that a late answer to an earlier one is
//! told apart. A request is written and signed when it is handed out; one that waits for credentials until its deadline
//! was never sent.

mod endpoint;
mod face;
mod flight;
mod keys;
mod node;
mod objects;
mod postgres;
mod store;
mod web;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

pub use crate::http::HttpResponse;
pub use face::{HttpRequest, Input, Output, RedisCommands, Response, Statement};
pub use store::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, DynamodbStore, EtcdStore,
    ObjectsService, ObjectsStore, PasswordLogin, Plaintext, PostgresStore, RedisHttpStore, RedisStore, SetupError,
    SortKey, Store,
};

use self::flight::{Exchange, Flight, Next, unsent};
use self::keys::Carried;
use self::node::{Kind, Node};
use self::web::Written;
use leasehold_core::config::{Config, LockOptions};
use leasehold_core::member::LossId;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Holding, Outcome, Refusal};
use leasehold_core::time::{Monotonic, Now};
use leasehold_core::timers::Timers;
use leasehold_core::{Entropy, Revocation, Seed};
use leasehold_core::{Error, Stats, Transmit};
use leasehold_core::{LockId, NodeId, Nonce, ReadId, RequestId, Resource, RunResult};

/// Of one [`WireClient::step`]: each may be as long as the longest request, and a host has them all in memory at once.
const MOST_OUTPUTS: usize = 1_000;

/// The sans-IO client that speaks to stores in their own formats. See the [module docs](self) for the loop that drives it.
///
/// Its methods are those of the core's own [`Client`](leasehold_core::Client), where more is said of them.
#[derive(Clone)]
pub struct WireClient {
    inner: leasehold_core::Client,
    nodes: Vec<Node>,
    /// By the ids of the core.
    flights: BTreeMap<RequestId, Flight>,
    deadlines: Timers<RequestId>,
    /// By the ids that the host sees.
    sent: BTreeMap<RequestId, Ask>,
    /// To be handed out.
    ready: VecDeque<Ask>,
    next_request: u64,
    ignored_responses: u64,
    timed_out_requests: u64,
}

/// A request of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Ask {
    flight: RequestId,
    index: usize,
}

impl core::fmt::Debug for WireClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WireClient").field("inner", &self.inner).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl WireClient {
    /// A client of the configured nodes, each with its store. How to [`poll`](leasehold_core::NodeConfig::poll) them is decided
    /// here, and [`watch`](leasehold_core::NodeConfig::watch) counts for [`Store::Redis`] and [`Store::Operations`] alone: the host
    /// subscribes to [`Codec::channel`](crate::redis::Codec::channel).
    ///
    /// # Errors
    /// Another number of stores than of nodes, or settings of a store that make no sense.
    pub fn new(mut config: Config, stores: Vec<Store>, seed: Seed, now: Now) -> Result<Self, SetupError> {
        let configs = config.nodes_mut();
        if stores.len() != configs.len() {
            return Err(SetupError::Stores { count: stores.len(), nodes: configs.len() });
        }
        let is_single = stores.len() == 1;
        let nodes = node_ids(stores.len()).zip(stores).zip(configs);
        let nodes = nodes
            .map(|((id, store), config)| Node::new(id, store, config, is_single))
            .collect::<Result<Vec<_>, _>>()?;
        let named = || node_ids(nodes.len()).zip(&nodes);
        if config.session().is_some()
            && let Some((node, _)) = named().find(|(_, node)| node.may_be_stale())
        {
            let detail = "the consistency of this Cosmos DB account was not checked, so a live session could be \
                          mistaken for one that has ended: leave the session out";
            return Err(SetupError::Store { node, denial: Denial::new(DenialKind::Other, detail) });
        }
        let observed: Vec<NodeId> =
            config.observed().chain(named().filter(|(_, node)| node.is_observed()).map(|(id, _)| id)).collect();
        let config = config.with_observed(observed);
        Ok(Self {
            inner: leasehold_core::Client::new(config, seed, now),
            nodes,
            flights: BTreeMap::new(),
            deadlines: Timers::default(),
            sent: BTreeMap::new(),
            ready: VecDeque::new(),
            next_request: 0,
            ignored_responses: 0,
            timed_out_requests: 0,
        })
    }

    /// Starts an acquisition under a lock id of the caller's choice.
    ///
    /// # Errors
    /// See [`leasehold_core::Client::acquire`].
    pub fn acquire(
        &mut self,
        lock: LockId,
        resource: Resource,
        options: LockOptions,
        fresh: &Entropy,
        now: Now,
    ) -> Result<(), Error> {
        self.expire(now);
        self.inner.acquire(lock, resource, options, fresh, now)
    }

    /// Gives a lock back, or gives up on getting it.
    ///
    /// # Errors
    /// See [`leasehold_core::Client::release`].
    pub fn release(&mut self, lock: LockId, now: Now) -> Result<(), Error> {
        self.expire(now);
        self.inner.release(lock, now)
    }

    /// Finishes a run: the completion that the work is done is written, and the resource freed, at once.
    ///
    /// # Errors
    /// See [`leasehold_core::Client::finish`].
    pub fn finish(&mut self, lock: LockId, run_result: Option<RunResult>, now: Now) -> Result<(), Error> {
        self.expire(now);
        self.inner.finish(lock, run_result, now)
    }

    /// Reads the record of a resource on every node.
    pub fn read(&mut self, resource: &Resource, now: Now) -> ReadId {
        self.expire(now);
        self.inner.read(resource, now)
    }

    /// The answers to a read, one for each node in their order, once all are there. They are returned once.
    pub fn take_read(&mut self, read: ReadId) -> Option<Vec<Outcome>> {
        self.inner.take_read(read)
    }

    /// Asks the holder of a lease to let go.
    pub fn revoke(&mut self, resource: &Resource, holder: Nonce, now: Now) -> ReadId {
        self.expire(now);
        self.inner.revoke(resource, holder, now)
    }

    /// The outcome of a revocation, once it is known. It is returned once.
    pub fn take_revoke(&mut self, revoke: ReadId) -> Option<Revocation> {
        self.inner.take_revoke(revoke)
    }

    /// The host's own reading of the deadline has told somebody that the lease is lost, so it must stay lost.
    ///
    /// # Errors
    /// See [`leasehold_core::Client::declare_lost`].
    pub fn declare_lost(&mut self, lock: LockId, now: Now) -> Result<(), Error> {
        self.expire(now);
        self.inner.declare_lost(lock, now)
    }

    /// Cancels all that is pending and releases all that is held; nothing new is accepted.
    pub fn close(&mut self, now: Now) {
        self.expire(now);
        self.inner.close(now);
    }

    /// Handles the result of a request. A result that belongs to no open request is counted and ignored.
    pub fn handle_response(&mut self, id: RequestId, response: Response, now: Now) {
        self.expire(now);
        let Some(ask) = self.sent.remove(&id) else {
            self.ignored_responses += 1;
            return;
        };
        let Some(flight) = self.flights.get_mut(&ask.flight) else { return };
        let Some(node) = self.nodes.get_mut(flight.node.index()) else { return };
        match flight.answered(ask.index, response, node, now) {
            Next::Wait => {}
            Next::Again => self.ready.push_back(ask),
            Next::Round => {
                self.ready.extend((0..flight.requests()).map(|index| Ask { flight: ask.flight, index }));
            }
            Next::Over => drop(self.forget(ask.flight)),
            Next::Done(result) => {
                if let Some(afterwards) = self.forget(ask.flight).and_then(Flight::afterwards) {
                    self.fly(ask.flight, afterwards);
                }
                self.inner.handle_response(ask.flight, result, now);
            }
        }
    }

    /// Does what is due. `fresh` are 16 bytes that the host drew from the operating system for this very call.
    pub fn handle_timeout(&mut self, fresh: &Entropy, now: Now) {
        self.expire(now);
        self.inner.handle_timeout(fresh, now);
    }

    /// A hint that a resource was released; it may be wrong.
    pub fn notified(&mut self, resource: &Resource, now: Now) {
        self.expire(now);
        self.inner.notified(resource, now);
    }

    /// The node confirms that wake-ups on a resource will come.
    pub fn subscribed(&mut self, node: NodeId, resource: &Resource, now: Now) {
        self.expire(now);
        self.inner.subscribed(node, resource, now);
    }

    /// For [`Store::Operations`]: the node has fresh credentials.
    pub fn credentials_renewed(&mut self, node: NodeId, now: Now) {
        self.expire(now);
        self.inner.credentials_renewed(node, now);
    }

    /// Sets the credentials that requests to a node carry from now on, asked for by
    /// [`NeedCredentials`](leasehold_core::Output::NeedCredentials) or not; those that wait for it leave.
    ///
    /// # Errors
    /// A node that takes none or others, or credentials that no header can hold.
    pub fn set_credentials(&mut self, node: NodeId, credentials: Credentials, now: Now) -> Result<(), SetupError> {
        self.check(node, &credentials)?;
        self.expire(now);
        if let Some(to) = self.nodes.get_mut(node.index()) {
            to.set_credentials(credentials, now);
            self.ready.extend(core::mem::take(&mut to.held));
        }
        self.inner.credentials_renewed(node, now);
        Ok(())
    }

    /// A look at a node of a quorum has shown that it votes.
    pub fn node_votes(&mut self, node: NodeId, loss: Option<LossId>, now: Now) {
        self.expire(now);
        self.inner.node_votes(node, loss, now);
    }

    /// Replaces the seed, for hosts that know that they were copied.
    pub fn reseed(&mut self, seed: Seed) {
        self.inner.reseed(seed);
    }

    /// The next thing for the host to do. [`WakeAt`](leasehold_core::Output::WakeAt) means that there is nothing more.
    pub fn poll_output(&mut self, now: Now) -> Output {
        self.expire(now);
        loop {
            if let Some(node) = self.asks_for_credentials(now) {
                return Output::Core(leasehold_core::Output::NeedCredentials { node });
            }
            if let Some(ask) = self.ready.pop_front() {
                match self.hand_out(ask, now) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            match self.inner.poll_output(now) {
                leasehold_core::Output::Transmit(transmit) => self.begin(transmit, now),
                // The node's codec has said so, or will as soon as a request needs them.
                leasehold_core::Output::NeedCredentials { node } if self.wired(node).is_some() => {}
                leasehold_core::Output::WakeAt(at) => {
                    let asks = self.nodes.iter().filter_map(|node| node.keys.ask_at());
                    return Output::Core(leasehold_core::Output::WakeAt(asks.fold(at, Monotonic::min)));
                }
                output @ (leasehold_core::Output::Event(_)
                | leasehold_core::Output::Subscribe { .. }
                | leasehold_core::Output::Unsubscribe { .. }
                | leasehold_core::Output::NeedCredentials { .. }
                | leasehold_core::Output::Rejected { .. }) => return Output::Core(output),
            }
        }
    }

    /// The whole loop in one call: takes the inputs, does what is due, appends the outputs, and answers when to call again
    /// at the latest. That is at once where more than 1,000 outputs are due: the others come with the next calls.
    ///
    /// # Errors
    /// Credentials among the inputs that do not fit their node; nothing was done then.
    pub fn step(
        &mut self,
        fresh: &Entropy,
        now: Now,
        inputs: Vec<Input>,
        outputs: &mut Vec<Output>,
    ) -> Result<Monotonic, SetupError> {
        for input in &inputs {
            if let Input::SetCredentials { node, credentials } = input {
                self.check(*node, credentials)?;
            }
        }
        for (n, input) in inputs.into_iter().enumerate() {
            match input {
                Input::Core(leasehold_core::Input::Response { id, result }) => {
                    let response = result.map_or_else(Response::Fault, Response::Outcomes);
                    self.handle_response(id, response, now);
                }
                Input::Core(input) => {
                    self.expire(now);
                    self.inner.handle_input(n, input, fresh, now);
                }
                Input::Response { id, response } => self.handle_response(id, response, now),
                Input::SetCredentials { node, credentials } => self.set_credentials(node, credentials, now)?,
            }
        }
        self.handle_timeout(fresh, now);
        for _ in 0..MOST_OUTPUTS {
            let output = self.poll_output(now);
            if let Output::Core(leasehold_core::Output::WakeAt(at)) = output {
                return Ok(at);
            }
            outputs.push(output);
        }
        Ok(now.monotonic)
    }

    /// How much validity a lease has left; zero when it is not held.
    pub fn remaining(&self, lock: LockId, now: Now) -> Duration {
        self.inner.remaining(lock, now)
    }

    /// The attempt by which a lease is held, `None` when it is not held.
    pub fn nonce(&self, lock: LockId) -> Option<Nonce> {
        self.inner.nonce(lock)
    }

    /// Returns the holder that blocks a pending acquisition, as far as the store shows it.
    pub fn holder(&self, lock: LockId) -> Option<&Holding> {
        self.inner.holder(lock)
    }

    /// The name of the state that a lock is in, `None` when it is not alive.
    pub fn state(&self, lock: LockId) -> Option<&'static str> {
        self.inner.state(lock)
    }

    /// Returns true if nothing is alive, in flight or undrained.
    pub fn is_idle(&self) -> bool {
        self.inner.is_idle() && self.ready.is_empty()
    }

    /// Returns counts of what the client keeps and has seen. Requests that one request of the core takes count as one.
    pub fn stats(&self) -> Stats {
        let stats = self.inner.stats();
        Stats {
            undrained: stats.undrained + self.ready.len(),
            ignored_responses: stats.ignored_responses + self.ignored_responses,
            timed_out_requests: stats.timed_out_requests + self.timed_out_requests,
            ..stats
        }
    }

    /// The settings, with what was decided of nodes by their stores.
    pub const fn config(&self) -> &Config {
        self.inner.config()
    }

    fn check(&self, node: NodeId, credentials: &Credentials) -> Result<(), SetupError> {
        let count = self.nodes.len();
        let Some(to) = self.nodes.get(node.index()) else {
            let what = alloc::format!("there is no such node; the client has {count}");
            return Err(SetupError::Store { node, denial: Denial::new(DenialKind::Other, &what) });
        };
        to.check(credentials).map_err(|denial| SetupError::Store { node, denial })
    }

    /// A node that is spoken to in the format of its store.
    fn wired(&mut self, node: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(node.index()).filter(|node| !matches!(node.kind, Kind::Operations))
    }

    fn asks_for_credentials(&mut self, now: Now) -> Option<NodeId> {
        let mut nodes = node_ids(self.nodes.len()).zip(&mut self.nodes);
        nodes.find_map(|(id, node)| node.keys.ask(now.monotonic).then_some(id))
    }

    fn begin(&mut self, transmit: Transmit, now: Now) {
        let (id, count) = (transmit.id, transmit.ops.len());
        let Some(node) = self.nodes.get(transmit.node.index()) else { return };
        match Flight::new(transmit, node, now) {
            Ok(flight) => self.fly(id, flight),
            Err(denial) => {
                let refused = Outcome::NotApplied(Refusal::Denied(denial));
                self.inner.handle_response(id, Ok(alloc::vec![refused; count]), now);
            }
        }
    }

    fn fly(&mut self, id: RequestId, mut flight: Flight) {
        self.deadlines.set(id, &mut flight.timer, Some(flight.deadline));
        self.ready.extend((0..flight.requests()).map(|index| Ask { flight: id, index }));
        self.flights.insert(id, flight);
    }

    /// A request as it leaves; `None` where it has to wait, or nobody wants it any more.
    fn hand_out(&mut self, ask: Ask, now: Now) -> Option<Output> {
        let id = RequestId::new(self.next_request);
        let flight = self.flights.get_mut(&ask.flight)?;
        let node = self.nodes.get_mut(flight.node.index())?;
        let (to, deadline) = (flight.node, flight.deadline);
        if let Some(statement) = flight.statement() {
            let statement = Statement { id, node: to, deadline, statement: statement.clone() };
            return Some(self.leaves(ask, None, Output::Statement(statement)));
        }
        match &flight.exchange {
            Exchange::Operations(ops) => {
                let transmit = Transmit { id, node: to, deadline, ops: ops.clone() };
                return Some(self.leaves(ask, None, Output::Core(leasehold_core::Output::Transmit(transmit))));
            }
            Exchange::Redis(exchange) => {
                let commands = exchange.commands().to_vec();
                let commands = RedisCommands { id, node: to, deadline, commands };
                return Some(self.leaves(ask, None, Output::RedisCommands(commands)));
            }
            Exchange::RedisHttp(_)
            | Exchange::Dynamodb(_)
            | Exchange::Etcd(_)
            | Exchange::Objects(..)
            | Exchange::Postgres(..)
            | Exchange::Afterwards(..) => {}
        }
        let Some((Written { method, url, headers, body }, carried)) = flight.write(ask.index, node, now) else {
            node.held.insert(ask);
            return None;
        };
        let request = HttpRequest { id, node: to, deadline, method, url, headers, body };
        Some(self.leaves(ask, carried, Output::HttpRequest(request)))
    }

    fn leaves(&mut self, ask: Ask, carried: Option<Carried>, output: Output) -> Output {
        let id = RequestId::new(self.next_request);
        self.next_request += 1;
        self.sent.insert(id, ask);
        if let Some(flight) = self.flights.get_mut(&ask.flight) {
            flight.sent(ask.index, id, carried);
        }
        output
    }

    /// Ends what has reached its deadline, before the core does: it would call unknown what has never left.
    fn expire(&mut self, now: Now) {
        while let Some(id) = self.deadlines.pop_due(now.monotonic) {
            let Some(flight) = self.forget(id) else { continue };
            let Some(node) = self.nodes.get_mut(flight.node.index()) else { continue };
            let held = node.held.len();
            node.held.retain(|ask| ask.flight != id);
            let is_held = node.held.len() < held;
            let unsent = if is_held { no_credentials() } else { unsent("the request could not be sent in time") };
            let (deadline, late) = (flight.deadline, flight.unanswered().next().is_some());
            if let Some(outcomes) = flight.expired(node, &unsent) {
                self.timed_out_requests += u64::from(late);
                let before = Monotonic::from_ns(deadline.ns().saturating_sub(1));
                self.inner.handle_response(id, Ok(outcomes), Now { monotonic: before, ..now });
            }
        }
    }

    /// Answers to what it has sent are ignored from now on.
    fn forget(&mut self, id: RequestId) -> Option<Flight> {
        let mut flight = self.flights.remove(&id)?;
        for sent in flight.unanswered() {
            self.sent.remove(&sent);
        }
        let mut timer = flight.timer.take();
        self.deadlines.set(id, &mut timer, None);
        Some(flight)
    }
}

fn no_credentials() -> Outcome {
    let fault = Fault::new(FaultKind::Timeout, "no valid credentials were set in time");
    Outcome::NotApplied(Refusal::NeedsCredentials(fault))
}

fn node_ids(nodes: usize) -> impl Iterator<Item = NodeId> {
    (0..u16::try_from(nodes).unwrap_or(u16::MAX)).map(NodeId::new)
}
