//! The injector's environment: a store, the network paths to it, and the faults of both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leasehold::ClientBuilder;
use leasehold::blocking::Client;
use leasehold::table::{self, NewTable};
use leasehold_bench::rng::Rng;
use leasehold_servers::dynamodb;
use leasehold_servers::proxy::{Fault as ProxyFault, Proxy, Request};
use leasehold_servers::redis::{Data, Server};
use rusqlite::Connection;

use super::faults::{Fault, Kind, Target};
use super::network::Network;
use super::now_ns;
use super::worker::QUORUM;
use crate::Result;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A SQLite file.
    Sqlite,
    /// A Redis server.
    Redis,
    /// A quorum of five Redis servers, two of which are durable.
    Quorum,
    /// DynamoDB Local.
    Dynamodb,
}

/// The number of nodes of the quorum, and how many may be down or abstain at once so that the others can still grant.
const NODES: usize = 5;
const MINORITY: usize = 2;
/// The number of nodes that write to disk before they answer.
const DURABLE: usize = 2;
/// The time for which a server that has lost its data abstains: `max_ttl`, the clocks' margins, and a second.
const ABSTENTION: Duration = Duration::from_millis(2_100);
/// The number of groups of workers. Each group has its own path to the store.
pub const GROUPS: usize = 2;

/// The shortest and the longest time between two faults of stores and paths, and the length of one.
const PAUSE: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(1_500)];
const LENGTH: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(1_500)];
/// Faults are injected for one span and not for the next, so that a loss without a reason can be seen.
const STORM: Duration = Duration::from_secs(6);
const CALM: Duration = Duration::from_secs(3);

impl StoreKind {
    /// All kinds, in the order of their turns.
    pub const ALL: [Self; 4] = [Self::Sqlite, Self::Redis, Self::Quorum, Self::Dynamodb];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
            Self::Quorum => "quorum",
            Self::Dynamodb => "dynamodb",
        }
    }

    /// The ttl of leases.
    pub const fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Self::Sqlite => 500,
            Self::Redis | Self::Quorum => 600,
            Self::Dynamodb => 1_000,
        })
    }

    /// The kinds of faults that are possible.
    pub fn kinds(self) -> Vec<Kind> {
        let kinds: &[Kind] = match self {
            Self::Sqlite => return vec![Kind::Stop, Kind::Kill, Kind::Busy],
            Self::Redis => &[Kind::Freeze, Kind::Crash],
            Self::Quorum => &[Kind::Freeze, Kind::Crash, Kind::Empty],
            Self::Dynamodb => &[Kind::Freeze],
        };
        [&[Kind::Stop, Kind::Kill, Kind::Cut], kinds, &Kind::PATH].concat()
    }

    /// The `max_ttl` of a quorum.
    pub fn max_ttl(self) -> Option<Duration> {
        (self == Self::Quorum).then_some(Duration::from_millis(1_000))
    }
}

enum Store {
    File(PathBuf),
    Redis(Vec<Server>),
    Dynamodb { server: dynamodb::Server, table: String },
}

/// A fault that has to be undone.
struct Active {
    fault: Fault,
    end: Instant,
    /// Another connection, which holds the write lock of the SQLite file.
    _busy: Option<Connection>,
    /// The proxy's counter of hits.
    proxy_fault: Option<ProxyFault>,
}

/// A store with all paths to it.
pub struct Environment {
    kind: StoreKind,
    store: Store,
    /// The proxies, by group and node.
    proxies: Vec<Vec<Proxy>>,
    network: Option<Network>,
    /// The reason why there is no network to cut.
    pub no_network: Option<String>,
    active: Vec<Active>,
    /// The time from which each node of the quorum votes again.
    counts_from: Vec<Instant>,
    next: Instant,
    start: Instant,
}

impl Environment {
    /// Starts the store and the proxies.
    ///
    /// # Errors
    /// When the store cannot be set up.
    pub fn open(kind: StoreKind, folder: &Path) -> Result<Self> {
        let store = match kind {
            StoreKind::Sqlite => Store::File(folder.join("locks.db")),
            StoreKind::Redis => Store::Redis(vec![Server::builder().appendonly().start()]),
            StoreKind::Quorum => Store::Redis((0..NODES).map(start_node).collect()),
            StoreKind::Dynamodb => Store::Dynamodb { server: dynamodb::Server::start(), table: dynamodb::table_name() },
        };
        let addresses = match &store {
            Store::File(_) => Vec::new(),
            Store::Redis(servers) => servers.iter().map(Server::address).collect(),
            Store::Dynamodb { server, .. } => vec![server.address()],
        };
        let proxies: Vec<Vec<Proxy>> =
            (0..GROUPS).map(|_| addresses.iter().map(|address| Proxy::to(*address)).collect()).collect();
        let inner: Vec<_> = proxies[GROUPS - 1].iter().map(Proxy::address).collect();
        let (network, no_network) = match (inner.is_empty(), Network::open(folder, &inner)) {
            (true, _) => (None, None),
            (false, Ok(network)) => (Some(network), None),
            (false, Err(why)) => (None, Some(why.to_string())),
        };
        let now = Instant::now();
        let counts_from = vec![now; addresses.len()];
        let environment =
            Self { kind, store, proxies, network, no_network, active: Vec::new(), counts_from, next: now, start: now };
        environment.prepare()?;
        Ok(environment)
    }

    /// Sets up the quorum or the table.
    fn prepare(&self) -> Result {
        match &self.store {
            Store::File(_) => {}
            Store::Redis(_) if self.kind == StoreKind::Quorum => {
                let mut builder = ClientBuilder::default().create_quorum().quorum_id(QUORUM);
                if let Some(max_ttl) = self.kind.max_ttl() {
                    builder = builder.max_ttl(max_ttl);
                }
                Client::connect_with(builder, self.urls(0).as_slice())?;
            }
            Store::Redis(_) => {}
            Store::Dynamodb { server, table } => {
                let url = dynamodb_url(table, &server.endpoint());
                table::create(&url, &NewTable::default())?;
            }
        }
        Ok(())
    }

    /// The urls of the store for a group of workers.
    pub fn urls(&self, group: usize) -> Vec<String> {
        let address = |node: usize| match &self.network {
            Some(network) if group == GROUPS - 1 => network.address(node),
            Some(_) | None => self.proxies[group][node].address(),
        };
        match &self.store {
            Store::File(path) => vec![format!("sqlite:{}", path.display())],
            Store::Redis(servers) => {
                let is_durable = |node| servers.len() == 1 || node < DURABLE;
                let url = |node| {
                    let durable = if is_durable(node) && servers.len() > 1 { "?durable=yes" } else { "" };
                    format!("redis://{}/{durable}", address(node))
                };
                (0..servers.len()).map(url).collect()
            }
            Store::Dynamodb { table, .. } => vec![dynamodb_url(table, &format!("http://{}", address(0)))],
        }
    }

    /// The words before the command of a worker of this group, which enter its network namespace.
    pub fn inside(&self, group: usize) -> Vec<String> {
        match &self.network {
            Some(network) if group == GROUPS - 1 => network.enter(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Undoes the faults that are due, and injects a new one if it is time. Returns the faults that were undone.
    ///
    /// # Errors
    /// When a fault cannot be injected or undone.
    pub fn tick(&mut self, rng: &mut Rng) -> Result<Vec<Fault>> {
        let now = Instant::now();
        let over = self.undo(now)?;
        let is_storm = (now - self.start).as_nanos() % (STORM + CALM).as_nanos() < STORM.as_nanos();
        if now >= self.next && is_storm {
            self.next = now + rng.between(PAUSE[0], PAUSE[1]);
            self.inject(rng)?;
        }
        Ok(over)
    }

    /// Undoes all faults and returns them.
    ///
    /// # Errors
    /// When a fault cannot be undone.
    pub fn undo_all(&mut self) -> Result<Vec<Fault>> {
        self.next = Instant::now() + Duration::from_secs(3_600);
        self.undo(self.next)
    }

    fn undo(&mut self, now: Instant) -> Result<Vec<Fault>> {
        let mut over = Vec::new();
        let mut at = 0;
        while at < self.active.len() {
            if self.active[at].end > now {
                at += 1;
                continue;
            }
            let Active { mut fault, _busy, proxy_fault, .. } = self.active.swap_remove(at);
            // Rolls back.
            drop(_busy);
            match (&fault.target, &self.store) {
                (Target::Store(node), Store::Redis(servers)) => match fault.kind {
                    Kind::Empty => {
                        servers[*node].restart(Data::Lost);
                        self.counts_from[*node] = Instant::now() + ABSTENTION;
                    }
                    Kind::Crash => servers[*node].restart(Data::Kept),
                    _ => servers[*node].continue_process(),
                },
                (Target::Store(_), Store::Dynamodb { server, .. }) => server.continue_process(),
                (Target::Path { group, node }, _) => {
                    let proxy = &self.proxies[*group][*node];
                    proxy.pass();
                    if matches!(fault.kind, Kind::LoseReply | Kind::BlackHole | Kind::Refuse) {
                        proxy.cut_all();
                    }
                }
                (Target::Network(_), _) => {
                    if let Some(network) = &self.network {
                        network.mend()?;
                    }
                }
                (Target::Store(_), Store::File(_)) | (Target::Worker(_), _) => {}
            }
            fault.to = now_ns();
            fault.has_hit = proxy_fault.is_none_or(|proxy_fault| proxy_fault.hits() > 0);
            over.push(fault);
        }
        Ok(over)
    }

    fn inject(&mut self, rng: &mut Rng) -> Result {
        // Short ones more often: a server that is back at once, without its memory, does the most harm.
        let length = rng.between(LENGTH[0], LENGTH[1]).min(rng.between(LENGTH[0], LENGTH[1]));
        let end = Instant::now() + length;
        let from = now_ns();
        let pick = |rng: &mut Rng, count: usize| (rng.draw() % count as u64) as usize;
        let is_active = |target: &Target| self.active.iter().any(|active| active.fault.target == *target);
        let (mut busy, mut proxy_fault) = (None, None);
        let (kind, target) = match &self.store {
            Store::File(path) => {
                let target = Target::Store(0);
                if is_active(&target) {
                    return Ok(());
                }
                let other = Connection::open(path)?;
                other.busy_timeout(Duration::ZERO)?;
                // A worker that is stopped may have the file: then nothing more is needed.
                if other.execute_batch("BEGIN IMMEDIATE").is_err() {
                    return Ok(());
                }
                busy = Some(other);
                (Kind::Busy, target)
            }
            Store::Redis(servers) if rng.once_in(2) => {
                let node = pick(rng, servers.len());
                let target = Target::Store(node);
                let now = Instant::now();
                let counts = |node: usize| !is_active(&Target::Store(node)) && self.counts_from[node] <= now;
                let missing = (0..servers.len()).filter(|node| !counts(*node)).count();
                let most = if servers.len() == 1 { 1 } else { MINORITY };
                if missing >= most || !counts(node) {
                    return Ok(());
                }
                let kind = match rng.draw() % 3 {
                    0 => Kind::Freeze,
                    _ if servers.len() == 1 || node < DURABLE => Kind::Crash,
                    _ => Kind::Empty,
                };
                if kind == Kind::Freeze {
                    servers[node].stop_process()
                } else {
                    servers[node].kill()
                }
                (kind, target)
            }
            // Killed, it would forget everything: it keeps its tables in memory.
            Store::Dynamodb { server, .. } if rng.once_in(3) && !is_active(&Target::Store(0)) => {
                server.stop_process();
                (Kind::Freeze, Target::Store(0))
            }
            Store::Redis(_) | Store::Dynamodb { .. } => {
                let group = pick(rng, GROUPS);
                if let (Some(network), true) = (&self.network, group == GROUPS - 1 && rng.once_in(3)) {
                    let target = Target::Network(group);
                    if is_active(&target) {
                        return Ok(());
                    }
                    network.cut()?;
                    (Kind::Cut, target)
                } else {
                    let node = pick(rng, self.proxies[group].len());
                    let kind = Kind::PATH[pick(rng, Kind::PATH.len())];
                    let target = Target::Path { group, node };
                    if is_active(&target) {
                        return Ok(());
                    }
                    proxy_fault = block(&self.proxies[group][node], kind, rng);
                    (kind, target)
                }
            }
        };
        let fault = Fault { kind, target, from, to: u64::MAX, has_hit: true };
        self.active.push(Active { fault, end, _busy: busy, proxy_fault });
        Ok(())
    }
}

/// Sets a proxy to a fault. Returns the counter of hits of a fault that waits for a request.
fn block(proxy: &Proxy, kind: Kind, rng: &mut Rng) -> Option<ProxyFault> {
    match kind {
        Kind::Delay => proxy.delay(rng.between(Duration::from_millis(5), Duration::from_millis(300))),
        Kind::Split => proxy.split(1 + (rng.draw() % 7) as usize),
        Kind::LoseReply => return Some(proxy.lose_replies(Request::any().nth(1 + (rng.draw() % 5) as usize))),
        Kind::Reset => {
            let first = Request::any().nth(1 + (rng.draw() % 5) as usize);
            return Some(proxy.reset_after_forwarding(first.times(1 + (rng.draw() % 3) as usize)));
        }
        Kind::BlackHole => proxy.black_hole(),
        _ => {
            proxy.refuse();
            proxy.cut_all();
        }
    }
    None
}

fn start_node(node: usize) -> Server {
    if node < DURABLE { Server::builder().appendonly().start() } else { Server::start() }
}

fn dynamodb_url(table: &str, endpoint: &str) -> String {
    format!("dynamodb://{table}?region={}&endpoint={endpoint}&plaintext=allow", dynamodb::REGION)
}
