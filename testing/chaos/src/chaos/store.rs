//! The stores of the runs: how each is started, reached, broken and mended.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leasehold::ClientBuilder;
use leasehold::blocking::Client;
use leasehold::schema;
use leasehold::table::{self, NewTable};
use leasehold_bench::rng::Rng;
use leasehold_servers::objects::{self, Api};
use leasehold_servers::postgres::{self, Pooler};
use leasehold_servers::redis::{self, Data};
use leasehold_servers::{dynamodb, etcd};
use rusqlite::Connection;
use serde_json::Value;

use super::environment::StoreKind;
use super::faults::Kind;
use super::worker::QUORUM;
use crate::Result;

/// The number of Redis servers of the quorum, and how many may be down or abstain at once so that the others can still
/// grant.
const NODES: usize = 5;
const MINORITY: usize = 2;
/// The number of nodes that write to disk before they answer.
const DURABLE: usize = 2;
/// The time for which a server that has lost its data abstains: `max_ttl`, the clocks' margins, and a second.
const ABSTENTION: Duration = Duration::from_millis(2_100);
/// The number of members of the etcd.
const MEMBERS: usize = 3;
/// The nodes of PostgreSQL.
const SERVER: usize = 0;
const POOLER: usize = 1;

/// A running store. Its nodes are the servers that workers connect to.
pub enum Store {
    /// A SQLite file.
    File {
        /// Its place.
        path: PathBuf,
        /// Another connection, which holds the write lock.
        busy: Option<Connection>,
    },
    /// One Redis server or a quorum of them.
    Redis {
        /// The nodes.
        servers: Vec<redis::Server>,
        /// The time from which each votes again.
        counts_from: Vec<Instant>,
    },
    /// DynamoDB Local.
    Dynamodb {
        /// The server.
        server: dynamodb::Server,
        /// The table.
        table: String,
    },
    /// PostgreSQL and a PgBouncer in front of it.
    Postgres {
        /// The server.
        server: Box<postgres::Server>,
        /// The pooler.
        pooler: Pooler,
    },
    /// The members of one etcd.
    Etcd(Vec<etcd::Server>),
    /// A quorum of three clouds.
    Clouds {
        /// The first node.
        dynamodb: dynamodb::Server,
        /// Its table.
        table: String,
        /// The other nodes.
        objects: Vec<objects::Server>,
    },
    /// Azurite.
    Azure(objects::Server),
}

impl Store {
    /// Starts the servers.
    pub fn start(kind: StoreKind, folder: &Path) -> Self {
        let redis = |servers: Vec<_>| Self::Redis { counts_from: vec![Instant::now(); servers.len()], servers };
        match kind {
            StoreKind::Sqlite => Self::File { path: folder.join("locks.db"), busy: None },
            StoreKind::Redis => redis(vec![redis::Server::builder().appendonly().start()]),
            StoreKind::Quorum => redis((0..NODES).map(start_node).collect()),
            StoreKind::Dynamodb => Self::Dynamodb { server: dynamodb::Server::start(), table: dynamodb::table_name() },
            StoreKind::Postgres => {
                let server = Box::new(postgres::Server::start());
                Self::Postgres { pooler: Pooler::start(&server), server }
            }
            StoreKind::Clouds => Self::Clouds {
                dynamodb: dynamodb::Server::start(),
                table: dynamodb::table_name(),
                objects: [Api::AzureBlob, Api::Gcs].map(objects::Server::start).into(),
            },
            StoreKind::Azure => Self::Azure(objects::Server::start(Api::AzureBlob)),
            StoreKind::Etcd => Self::Etcd(etcd::Server::cluster::<MEMBERS>(&[]).into()),
        }
    }

    /// The addresses of the nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::File { .. } => Vec::new(),
            Self::Redis { servers, .. } => servers.iter().map(redis::Server::address).collect(),
            Self::Dynamodb { server, .. } => vec![server.address()],
            Self::Azure(server) => vec![server.address()],
            Self::Postgres { server, pooler } => vec![server.address(), ([127, 0, 0, 1], pooler.port()).into()],
            Self::Etcd(members) => members.iter().map(etcd::Server::address).collect(),
            Self::Clouds { dynamodb, objects, .. } => {
                [dynamodb.address()].into_iter().chain(objects.iter().map(objects::Server::address)).collect()
            }
        }
    }

    /// The nodes that a group of workers connects to.
    pub fn nodes(&self, group: usize) -> Vec<usize> {
        match self {
            Self::Postgres { .. } if group == 0 => vec![SERVER],
            _ => (0..self.addresses().len()).collect(),
        }
    }

    /// The urls for a group of workers that reaches the nodes at these addresses.
    pub fn urls(&self, group: usize, address: impl Fn(usize) -> SocketAddr) -> Vec<String> {
        match self {
            Self::File { path, .. } => vec![format!("sqlite:{}", path.display())],
            Self::Redis { servers, .. } => {
                let is_durable = |node| servers.len() == 1 || node < DURABLE;
                let url = |node| {
                    let durable = if is_durable(node) && servers.len() > 1 { "?durable=yes" } else { "" };
                    format!("redis://{}/{durable}", address(node))
                };
                (0..servers.len()).map(url).collect()
            }
            Self::Dynamodb { table, .. } => vec![dynamodb_url(table, &format!("http://{}", address(0)))],
            Self::Postgres { .. } => {
                let (node, listen) =
                    if group == 0 { (SERVER, "yes".to_owned()) } else { (POOLER, address(SERVER).to_string()) };
                let place = address(node);
                vec![format!("postgres://postgres@{place}/postgres?sslmode=disable&listen={listen}")]
            }
            Self::Etcd(_) => {
                let members: Vec<_> = (0..MEMBERS).map(|node| address(node).to_string()).collect();
                vec![format!("etcd://{}", members.join(","))]
            }
            Self::Azure(server) => vec![object_url(server, address(0))],
            Self::Clouds { table, objects, .. } => {
                let mut urls = vec![dynamodb_url(table, &format!("http://{}", address(0)))];
                urls.extend(objects.iter().enumerate().map(|(at, server)| object_url(server, address(at + 1))));
                urls
            }
        }
    }

    /// Makes the quorum or the table.
    ///
    /// # Errors
    /// The client's.
    pub fn prepare(&self, kind: StoreKind, urls: &[String]) -> Result {
        match self {
            Self::Redis { servers, .. } if servers.len() > 1 => create_quorum(kind, urls)?,
            Self::Clouds { dynamodb, table, .. } => {
                table::create(&dynamodb_url(table, &dynamodb.endpoint()), &NewTable::default())?;
                create_quorum(kind, urls)?;
            }
            Self::Dynamodb { server, table } => {
                table::create(&dynamodb_url(table, &server.endpoint()), &NewTable::default())?;
            }
            Self::Postgres { .. } => schema::create(urls)?,
            Self::File { .. } | Self::Redis { .. } | Self::Etcd(_) | Self::Azure(_) => {}
        }
        Ok(())
    }

    /// One fault in this many strikes a node, the others a path to one.
    pub const fn share(&self) -> u64 {
        match self {
            Self::File { .. } => 1,
            Self::Redis { .. } | Self::Postgres { .. } | Self::Etcd(_) => 2,
            Self::Dynamodb { .. } | Self::Clouds { .. } | Self::Azure(_) => 3,
        }
    }

    /// Breaks a node that is not broken, if the rest may then still grant.
    ///
    /// # Errors
    /// SQLite's.
    pub fn strike(&mut self, rng: &mut Rng, is_broken: impl Fn(usize) -> bool) -> Result<Option<(Kind, usize)>> {
        let nodes = self.addresses().len().max(1);
        let node = (rng.draw() % nodes as u64) as usize;
        let broken = (0..nodes).filter(|node| is_broken(*node)).count();
        let struck = match self {
            Self::File { path, busy } => {
                let other = Connection::open(path)?;
                other.busy_timeout(Duration::ZERO)?;
                // A worker that is stopped may have the file: then nothing more is needed.
                if is_broken(0) || other.execute_batch("BEGIN IMMEDIATE").is_err() {
                    return Ok(None);
                }
                *busy = Some(other);
                (Kind::Busy, 0)
            }
            Self::Redis { servers, counts_from } => {
                let now = Instant::now();
                let counts = |node: usize| !is_broken(node) && counts_from[node] <= now;
                let missing = (0..nodes).filter(|node| !counts(*node)).count();
                let most = if nodes == 1 { 1 } else { MINORITY };
                if missing >= most || !counts(node) {
                    return Ok(None);
                }
                let kind = match rng.draw() % 3 {
                    0 => Kind::Freeze,
                    _ if nodes == 1 || node < DURABLE => Kind::Crash,
                    _ => Kind::Empty,
                };
                if kind == Kind::Freeze {
                    servers[node].stop_process()
                } else {
                    servers[node].kill()
                }
                (kind, node)
            }
            _ if broken > 0 => return Ok(None),
            // Killed, it would forget everything: it keeps its tables in memory.
            Self::Dynamodb { server, .. } => {
                server.stop_process();
                (Kind::Freeze, 0)
            }
            Self::Azure(server) => {
                server.stop_process();
                (Kind::Freeze, 0)
            }
            Self::Clouds { dynamodb, objects, .. } => {
                match node.checked_sub(1).and_then(|at| objects.get(at)) {
                    Some(server) => server.stop_process(),
                    None => dynamodb.stop_process(),
                }
                (Kind::Freeze, node)
            }
            Self::Postgres { server, pooler } => match rng.draw() % 5 {
                0 => {
                    server.stop_process();
                    (Kind::Freeze, SERVER)
                }
                1 => {
                    server.kill();
                    (Kind::Crash, SERVER)
                }
                2 => {
                    pooler.kill();
                    (Kind::Pooler, POOLER)
                }
                _ => {
                    server.run(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold'",
                    );
                    (Kind::Terminate, SERVER)
                }
            },
            Self::Etcd(members) => {
                let leader = leader(members);
                let node = if rng.once_in(2) { leader.unwrap_or(node) } else { node };
                let kind = match rng.draw() % 3 {
                    0 => Kind::Freeze,
                    _ if leader == Some(node) => Kind::Leader,
                    _ => Kind::Crash,
                };
                if kind == Kind::Freeze {
                    members[node].stop_process()
                } else {
                    members[node].kill()
                }
                (kind, node)
            }
        };
        Ok(Some(struck))
    }

    /// Mends what [`Store::strike`] broke.
    pub fn mend(&mut self, kind: Kind, node: usize) {
        match self {
            // Rolls back.
            Self::File { busy, .. } => *busy = None,
            Self::Redis { servers, counts_from } => match kind {
                Kind::Empty => {
                    servers[node].restart(Data::Lost);
                    counts_from[node] = Instant::now() + ABSTENTION;
                }
                Kind::Crash => servers[node].restart(Data::Kept),
                _ => servers[node].continue_process(),
            },
            Self::Dynamodb { server, .. } => server.continue_process(),
            Self::Azure(server) => server.continue_process(),
            Self::Clouds { dynamodb, objects, .. } => match node.checked_sub(1).and_then(|at| objects.get(at)) {
                Some(server) => server.continue_process(),
                None => dynamodb.continue_process(),
            },
            Self::Postgres { server, pooler } => match kind {
                Kind::Crash => server.restart(),
                Kind::Pooler => pooler.restart(),
                Kind::Freeze => server.continue_process(),
                _ => {}
            },
            Self::Etcd(members) => match kind {
                Kind::Freeze => members[node].continue_process(),
                _ => members[node].restart(),
            },
        }
    }
}

fn create_quorum(kind: StoreKind, urls: &[String]) -> Result {
    let mut builder = ClientBuilder::default().create_quorum().quorum_id(QUORUM);
    if let Some(max_ttl) = kind.max_ttl() {
        builder = builder.max_ttl(max_ttl);
    }
    Client::connect_with(builder, urls)?.close()?;
    Ok(())
}

/// The member that is the leader, as the first one sees it that answers.
fn leader(members: &[etcd::Server]) -> Option<usize> {
    let status = |member: &etcd::Server| {
        let status: Value = serde_json::from_str(&member.post("/v3/maintenance/status", "{}").text()).ok()?;
        Some((status["header"]["member_id"].as_str()?.to_owned(), status["leader"].as_str()?.to_owned()))
    };
    let all: Vec<_> = members.iter().map(status).collect();
    let (_, leader) = all.iter().flatten().next()?;
    all.iter().position(|member| member.as_ref().is_some_and(|(id, _)| id == leader))
}

fn start_node(node: usize) -> redis::Server {
    if node < DURABLE { redis::Server::builder().appendonly().start() } else { redis::Server::start() }
}

fn dynamodb_url(table: &str, endpoint: &str) -> String {
    format!("dynamodb://{table}?region={}&endpoint={endpoint}&plaintext=allow", dynamodb::REGION)
}

fn object_url(server: &objects::Server, address: SocketAddr) -> String {
    format!("{}&plaintext=allow", server.url_at(address, "chaos"))
}
