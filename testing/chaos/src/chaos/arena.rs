//! A store to fight over, the ways to it, and what can be done to both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leasehold::ClientBuilder;
use leasehold::blocking::Client;
use leasehold::table::{self, NewTable};
use leasehold_bench::chance::Chance;
use leasehold_servers::dynamodb;
use leasehold_servers::proxy::{Fault, Proxy, Request};
use leasehold_servers::redis::{Data, Server};
use rusqlite::Connection;

use super::blows::{Blow, Kind, Target};
use super::network::Network;
use super::now_ns;
use super::worker::QUORUM;
use crate::Result;

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arena {
    /// One file.
    Sqlite,
    /// One server.
    Redis,
    /// Five servers, two of which keep what they were told.
    Quorum,
    /// DynamoDB Local.
    Dynamodb,
}

/// Nodes of the quorum, and who may be away or abstain at the same time, so that the others can grant.
const NODES: usize = 5;
const MINORITY: usize = 2;
/// These write everything down before they answer.
const DURABLE: usize = 2;
/// A server that has lost its data abstains for `max_ttl`, the clocks' margins, and a second; then it is of use again.
const ABSTENTION: Duration = Duration::from_millis(2_100);
/// Groups of workers that have a way of their own.
pub const GROUPS: usize = 2;

/// Between two blows at stores and ways, and how long each lasts.
const PAUSE: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(1_500)];
const LENGTH: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(1_500)];
/// They come for a while, and then not, so that a loss without a reason would be seen.
const STORM: Duration = Duration::from_secs(6);
const CALM: Duration = Duration::from_secs(3);

impl Arena {
    /// In the order in which they take turns.
    pub const ALL: [Self; 4] = [Self::Sqlite, Self::Redis, Self::Quorum, Self::Dynamodb];

    /// On the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
            Self::Quorum => "quorum",
            Self::Dynamodb => "dynamodb",
        }
    }

    /// How long a lease lasts.
    pub const fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Self::Sqlite => 500,
            Self::Redis | Self::Quorum => 600,
            Self::Dynamodb => 1_000,
        })
    }

    /// What can be done here.
    pub fn kinds(self) -> Vec<Kind> {
        let kinds: &[Kind] = match self {
            Self::Sqlite => return vec![Kind::Stop, Kind::Kill, Kind::Busy],
            Self::Redis => &[Kind::Freeze, Kind::Crash],
            Self::Quorum => &[Kind::Freeze, Kind::Crash, Kind::Empty],
            Self::Dynamodb => &[Kind::Freeze],
        };
        [&[Kind::Stop, Kind::Kill, Kind::Cut], kinds, &Kind::PATH].concat()
    }

    /// Of a quorum: the longest ttl.
    pub fn max_ttl(self) -> Option<Duration> {
        (self == Self::Quorum).then_some(Duration::from_millis(1_000))
    }
}

enum Store {
    File(PathBuf),
    Redis(Vec<Server>),
    Dynamodb { server: dynamodb::Server, table: String },
}

/// Something that was done and has to be undone.
struct Open {
    blow: Blow,
    end: Instant,
    /// What somebody else holds of the SQLite file.
    _busy: Option<Connection>,
    /// What waits for something to hit.
    fault: Option<Fault>,
}

/// The store of an arena, with all ways to it.
pub struct Place {
    arena: Arena,
    store: Store,
    /// By group and node.
    ways: Vec<Vec<Proxy>>,
    network: Option<Network>,
    /// Why there is no network to cut.
    pub no_network: Option<String>,
    open: Vec<Open>,
    /// By node of the quorum: from when on it counts again.
    counts_from: Vec<Instant>,
    next: Instant,
    start: Instant,
}

impl Place {
    /// Starts everything.
    ///
    /// # Errors
    /// When the store does not take its first client.
    pub fn open(arena: Arena, folder: &Path) -> Result<Self> {
        let store = match arena {
            Arena::Sqlite => Store::File(folder.join("locks.db")),
            Arena::Redis => Store::Redis(vec![Server::builder().appendonly().start()]),
            Arena::Quorum => Store::Redis((0..NODES).map(start_node).collect()),
            Arena::Dynamodb => Store::Dynamodb { server: dynamodb::Server::start(), table: dynamodb::table_name() },
        };
        let addresses = match &store {
            Store::File(_) => Vec::new(),
            Store::Redis(servers) => servers.iter().map(Server::address).collect(),
            Store::Dynamodb { server, .. } => vec![server.address()],
        };
        let ways: Vec<Vec<Proxy>> =
            (0..GROUPS).map(|_| addresses.iter().map(|address| Proxy::to(*address)).collect()).collect();
        let inner: Vec<_> = ways[GROUPS - 1].iter().map(Proxy::address).collect();
        let (network, no_network) = match (inner.is_empty(), Network::open(folder, &inner)) {
            (true, _) => (None, None),
            (false, Ok(network)) => (Some(network), None),
            (false, Err(why)) => (None, Some(why.to_string())),
        };
        let now = Instant::now();
        let counts_from = vec![now; addresses.len()];
        let place =
            Self { arena, store, ways, network, no_network, open: Vec::new(), counts_from, next: now, start: now };
        place.prepare()?;
        Ok(place)
    }

    /// What the workers expect to be there.
    fn prepare(&self) -> Result {
        match &self.store {
            Store::File(_) => {}
            Store::Redis(_) if self.arena == Arena::Quorum => {
                let mut builder = ClientBuilder::default().create_quorum().quorum_id(QUORUM);
                if let Some(max_ttl) = self.arena.max_ttl() {
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

    /// How a group of workers reaches the store.
    pub fn urls(&self, group: usize) -> Vec<String> {
        let address = |node: usize| match &self.network {
            Some(network) if group == GROUPS - 1 => network.address(node),
            Some(_) | None => self.ways[group][node].address(),
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

    /// What stands in front of the command of a worker of this group.
    pub fn inside(&self, group: usize) -> Vec<String> {
        match &self.network {
            Some(network) if group == GROUPS - 1 => network.enter(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Undoes what is over, and does something new if it is time. Answers what is over.
    ///
    /// # Errors
    /// When something cannot be done or undone.
    pub fn go_on(&mut self, chance: &mut Chance) -> Result<Vec<Blow>> {
        let now = Instant::now();
        let over = self.undo(now)?;
        let is_storm = (now - self.start).as_nanos() % (STORM + CALM).as_nanos() < STORM.as_nanos();
        if now >= self.next && is_storm {
            self.next = now + chance.between(PAUSE[0], PAUSE[1]);
            self.strike(chance)?;
        }
        Ok(over)
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// When something cannot be undone.
    pub fn calm_down(&mut self) -> Result<Vec<Blow>> {
        self.next = Instant::now() + Duration::from_secs(3_600);
        self.undo(self.next)
    }

    fn undo(&mut self, now: Instant) -> Result<Vec<Blow>> {
        let mut over = Vec::new();
        let mut at = 0;
        while at < self.open.len() {
            if self.open[at].end > now {
                at += 1;
                continue;
            }
            let Open { mut blow, _busy, fault, .. } = self.open.swap_remove(at);
            // Rolls back.
            drop(_busy);
            match (&blow.target, &self.store) {
                (Target::Store(node), Store::Redis(servers)) => match blow.kind {
                    Kind::Empty => {
                        servers[*node].restart(Data::Lost);
                        self.counts_from[*node] = Instant::now() + ABSTENTION;
                    }
                    Kind::Crash => servers[*node].restart(Data::Kept),
                    _ => servers[*node].continue_process(),
                },
                (Target::Store(_), Store::Dynamodb { server, .. }) => server.continue_process(),
                (Target::Path { group, node }, _) => {
                    let way = &self.ways[*group][*node];
                    way.pass();
                    if matches!(blow.kind, Kind::LoseReply | Kind::BlackHole | Kind::Refuse) {
                        way.cut_all();
                    }
                }
                (Target::Network(_), _) => {
                    if let Some(network) = &self.network {
                        network.mend()?;
                    }
                }
                (Target::Store(_), Store::File(_)) | (Target::Worker(_), _) => {}
            }
            blow.to = now_ns();
            blow.has_hit = fault.is_none_or(|fault| fault.hits() > 0);
            over.push(blow);
        }
        Ok(over)
    }

    fn strike(&mut self, chance: &mut Chance) -> Result {
        // Short ones more often: a server that is back at once, without its memory, does the most harm.
        let length = chance.between(LENGTH[0], LENGTH[1]).min(chance.between(LENGTH[0], LENGTH[1]));
        let end = Instant::now() + length;
        let from = now_ns();
        let pick = |chance: &mut Chance, count: usize| (chance.draw() % count as u64) as usize;
        let is_struck = |target: &Target| self.open.iter().any(|open| open.blow.target == *target);
        let (mut busy, mut fault) = (None, None);
        let (kind, target) = match &self.store {
            Store::File(path) => {
                let target = Target::Store(0);
                if is_struck(&target) {
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
            Store::Redis(servers) if chance.once_in(2) => {
                let node = pick(chance, servers.len());
                let target = Target::Store(node);
                let now = Instant::now();
                let counts = |node: usize| !is_struck(&Target::Store(node)) && self.counts_from[node] <= now;
                let missing = (0..servers.len()).filter(|node| !counts(*node)).count();
                let most = if servers.len() == 1 { 1 } else { MINORITY };
                if missing >= most || !counts(node) {
                    return Ok(());
                }
                let kind = match chance.draw() % 3 {
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
            Store::Dynamodb { server, .. } if chance.once_in(3) && !is_struck(&Target::Store(0)) => {
                server.stop_process();
                (Kind::Freeze, Target::Store(0))
            }
            Store::Redis(_) | Store::Dynamodb { .. } => {
                let group = pick(chance, GROUPS);
                if let (Some(network), true) = (&self.network, group == GROUPS - 1 && chance.once_in(3)) {
                    let target = Target::Network(group);
                    if is_struck(&target) {
                        return Ok(());
                    }
                    network.cut()?;
                    (Kind::Cut, target)
                } else {
                    let node = pick(chance, self.ways[group].len());
                    let kind = Kind::PATH[pick(chance, Kind::PATH.len())];
                    let target = Target::Path { group, node };
                    if is_struck(&target) {
                        return Ok(());
                    }
                    fault = block(&self.ways[group][node], kind, chance);
                    (kind, target)
                }
            }
        };
        let blow = Blow { kind, target, from, to: u64::MAX, has_hit: true };
        self.open.push(Open { blow, end, _busy: busy, fault });
        Ok(())
    }
}

/// Answers what has yet to hit.
fn block(way: &Proxy, kind: Kind, chance: &mut Chance) -> Option<Fault> {
    match kind {
        Kind::Delay => way.delay(chance.between(Duration::from_millis(5), Duration::from_millis(300))),
        Kind::Split => way.split(1 + (chance.draw() % 7) as usize),
        Kind::LoseReply => return Some(way.lose_replies(Request::any().nth(1 + (chance.draw() % 5) as usize))),
        Kind::Reset => {
            let first = Request::any().nth(1 + (chance.draw() % 5) as usize);
            return Some(way.reset_after_forwarding(first.times(1 + (chance.draw() % 3) as usize)));
        }
        Kind::BlackHole => way.black_hole(),
        _ => {
            way.refuse();
            way.cut_all();
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
