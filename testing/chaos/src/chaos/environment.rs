//! The injector's environment: a store, the network paths to it, and the faults of both.

use std::path::Path;
use std::time::{Duration, Instant};

use leasehold_bench::rng::Rng;
use leasehold_servers::proxy::{Fault as ProxyFault, Proxy, Request};

use super::faults::{Fault, Kind, Target};
use super::network::Network;
use super::now_ns;
use super::store::Store;
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
    /// PostgreSQL, for one group of workers through PgBouncer.
    Postgres,
    /// An etcd of three members.
    Etcd,
    /// A quorum of DynamoDB Local, Azurite and fake-gcs-server, as of three clouds.
    Clouds,
    /// Azurite.
    Azure,
}

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
    pub const ALL: [Self; 8] = [
        Self::Sqlite,
        Self::Redis,
        Self::Quorum,
        Self::Dynamodb,
        Self::Postgres,
        Self::Etcd,
        Self::Clouds,
        Self::Azure,
    ];
    /// The kinds where no other is named: an object store is a node of [`StoreKind::Clouds`].
    pub const USUAL: [Self; 7] =
        [Self::Sqlite, Self::Redis, Self::Quorum, Self::Dynamodb, Self::Postgres, Self::Etcd, Self::Clouds];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
            Self::Quorum => "quorum",
            Self::Dynamodb => "dynamodb",
            Self::Postgres => "postgres",
            Self::Etcd => "etcd",
            Self::Clouds => "clouds",
            Self::Azure => "azure",
        }
    }

    /// The ttl of leases.
    pub const fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Self::Sqlite => 500,
            Self::Redis | Self::Quorum | Self::Postgres => 600,
            Self::Dynamodb | Self::Etcd | Self::Azure => 1_000,
            Self::Clouds => 2_000,
        })
    }

    /// The kinds of faults that are possible.
    pub fn kinds(self) -> Vec<Kind> {
        let kinds: &[Kind] = match self {
            Self::Sqlite => return vec![Kind::Stop, Kind::Kill, Kind::Busy],
            Self::Redis => &[Kind::Freeze, Kind::Crash],
            Self::Quorum => &[Kind::Freeze, Kind::Crash, Kind::Empty],
            Self::Dynamodb | Self::Clouds | Self::Azure => &[Kind::Freeze],
            Self::Postgres => &[Kind::Freeze, Kind::Crash, Kind::Terminate, Kind::Pooler],
            Self::Etcd => &[Kind::Freeze, Kind::Crash, Kind::Leader],
        };
        [&[Kind::Stop, Kind::Kill, Kind::Cut], kinds, &Kind::PATH].concat()
    }

    /// The `max_ttl` of a quorum.
    pub fn max_ttl(self) -> Option<Duration> {
        match self {
            Self::Quorum => Some(Duration::from_millis(1_000)),
            Self::Clouds => Some(Duration::from_millis(4_000)),
            Self::Sqlite | Self::Redis | Self::Dynamodb | Self::Postgres | Self::Etcd | Self::Azure => None,
        }
    }
}

/// A fault that has to be undone.
struct Active {
    fault: Fault,
    end: Instant,
    /// The proxy's counter of hits.
    proxy_fault: Option<ProxyFault>,
}

/// A store with all paths to it.
pub struct Environment {
    store: Store,
    /// The proxies, by group and node.
    proxies: Vec<Vec<Proxy>>,
    network: Option<Network>,
    /// The reason why there is no network to cut.
    pub no_network: Option<String>,
    active: Vec<Active>,
    next: Instant,
    start: Instant,
}

impl Environment {
    /// Starts the store and the proxies.
    ///
    /// # Errors
    /// When the store cannot be set up.
    pub fn open(kind: StoreKind, folder: &Path) -> Result<Self> {
        let store = Store::start(kind, folder);
        let addresses = store.addresses();
        let proxies: Vec<Vec<Proxy>> =
            (0..GROUPS).map(|_| addresses.iter().map(|address| Proxy::to(*address)).collect()).collect();
        let inner: Vec<_> = proxies[GROUPS - 1].iter().map(Proxy::address).collect();
        let (network, no_network) = match (inner.is_empty(), Network::open(folder, &inner)) {
            (true, _) => (None, None),
            (false, Ok(network)) => (Some(network), None),
            (false, Err(why)) => (None, Some(why.to_string())),
        };
        let now = Instant::now();
        let environment = Self { store, proxies, network, no_network, active: Vec::new(), next: now, start: now };
        environment.store.prepare(kind, &environment.urls(0))?;
        Ok(environment)
    }

    /// The urls of the store for a group of workers.
    pub fn urls(&self, group: usize) -> Vec<String> {
        let address = |node: usize| match &self.network {
            Some(network) if group == GROUPS - 1 => network.address(node),
            Some(_) | None => self.proxies[group][node].address(),
        };
        self.store.urls(group, address)
    }

    /// The urls of the store through separate proxies, on which no fault is injected and every answer takes longer by this.
    pub fn slow_urls(&mut self, delay: Duration) -> Vec<String> {
        let proxies: Vec<Proxy> = self.store.addresses().into_iter().map(Proxy::to).collect();
        proxies.iter().for_each(|proxy| proxy.delay(delay));
        let urls = self.store.urls(0, |node| proxies[node].address());
        self.proxies.push(proxies);
        urls
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
        self.undo(Instant::now() + Duration::from_secs(3_600))
    }

    fn undo(&mut self, now: Instant) -> Result<Vec<Fault>> {
        let mut over = Vec::new();
        let mut at = 0;
        while at < self.active.len() {
            if self.active[at].end > now {
                at += 1;
                continue;
            }
            let Active { mut fault, proxy_fault, .. } = self.active.swap_remove(at);
            match &fault.target {
                Target::Store(node) => self.store.mend(fault.kind, *node),
                Target::Path { group, node } => {
                    let proxy = &self.proxies[*group][*node];
                    proxy.pass();
                    if matches!(fault.kind, Kind::LoseReply | Kind::BlackHole | Kind::Refuse) {
                        proxy.cut_all();
                    }
                }
                Target::Network(_) => {
                    if let Some(network) = &self.network {
                        network.mend()?;
                    }
                }
                Target::Worker(_) => {}
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
        let mut end = Instant::now() + length;
        let from = now_ns();
        let pick = |rng: &mut Rng, count: usize| (rng.draw() % count as u64) as usize;
        let active = &self.active;
        let is_active = |target: &Target| active.iter().any(|active| active.fault.target == *target);
        let mut proxy_fault = None;
        let (kind, target) = if rng.once_in(self.store.share()) {
            let Some((kind, node)) = self.store.strike(rng, |node| is_active(&Target::Store(node)))? else {
                return Ok(());
            };
            if kind == Kind::Terminate {
                end = Instant::now();
            }
            (kind, Target::Store(node))
        } else {
            let group = pick(rng, GROUPS);
            if let (Some(network), true) = (&self.network, group == GROUPS - 1 && rng.once_in(3)) {
                let target = Target::Network(group);
                if is_active(&target) {
                    return Ok(());
                }
                network.cut()?;
                (Kind::Cut, target)
            } else {
                let nodes = self.store.nodes(group);
                let node = nodes[pick(rng, nodes.len())];
                let kind = Kind::PATH[pick(rng, Kind::PATH.len())];
                let target = Target::Path { group, node };
                if is_active(&target) {
                    return Ok(());
                }
                proxy_fault = block(&self.proxies[group][node], kind, rng);
                (kind, target)
            }
        };
        let fault = Fault { kind, target, from, to: u64::MAX, has_hit: true };
        self.active.push(Active { fault, end, proxy_fault });
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
