//! The cost of leasehold on PostgreSQL, compared with two bare statements on the same driver and with advisory locks.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use leasehold_bench::child;
use leasehold_bench::peers::turns::{self, Held, Peer, Plan, TTL, held};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_servers::postgres::{Pooler, Server};
use leasehold_servers::proxy::Proxy;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

const BARE: &str = "two bare statements";
const UNNAMED: &str = "two bare statements, unnamed";
const ADVISORY: &str = "advisory lock";
const OURS: &str = "leasehold";
const LISTENING: &str = "leasehold, listen=yes";

/// The connections of one peer, as many as leasehold uses for callers.
const CONNECTIONS: usize = 6;
/// Bare statements write as many columns as a lock has, under the simplest condition that excludes others.
const TABLE: &str = "CREATE TABLE bare (LIKE leasehold INCLUDING ALL) WITH (fillfactor = 70)";
const TAKE: &str = "\
    INSERT INTO bare AS l (resource, counter, nonce, seq, released, ttl_us, since, expires_at, owner) \
    VALUES ($1, 1, $2, 1, false, $3, clock_timestamp(), clock_timestamp() + $3 * interval '1 microsecond', $4) \
    ON CONFLICT (resource) DO UPDATE SET counter = l.counter + 1, nonce = EXCLUDED.nonce, seq = EXCLUDED.seq, \
    released = false, ttl_us = EXCLUDED.ttl_us, since = EXCLUDED.since, expires_at = EXCLUDED.expires_at, \
    owner = EXCLUDED.owner WHERE l.released OR l.expires_at <= clock_timestamp() RETURNING counter";
const FREE: &str =
    "UPDATE bare SET released = true WHERE resource = $1 AND nonce = $2 AND NOT released RETURNING 1::bigint";
const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended($1, 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended($1, 0))";

pub(crate) fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => turns::work::<Way>(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-postgres", result)
}

fn measure() -> Result {
    let plan = Plan::chosen()?;
    let server = Server::start();
    let pooler = Pooler::start(&server);
    let proxy = Proxy::to(server.address());
    let version: String = server.value("SHOW server_version");
    println!("{}", surroundings(&format!("PostgreSQL {version} on 127.0.0.1, which does not wait for its disk")));
    leasehold_bench::records::version("PostgreSQL", version.split(' ').next().unwrap_or("unknown"));
    let (direct, pooled) = (server.url(), server.url_at(pooler.port()));
    leasehold::schema::create(direct.as_str())?;
    server.run(TABLE);
    let at = |url: &str, names: &[&'static str]| names.iter().map(|name| (*name, url.to_owned())).collect::<Vec<_>>();
    turns::one_client::<Way>("one client, async", &at(&direct, &[BARE, OURS, UNNAMED, ADVISORY]), &plan)?;
    turns::one_client::<Way>("one client, through PgBouncer", &at(&pooled, &[UNNAMED, OURS]), &plan)?;
    turns::many_tasks::<Way>(&at(&direct, &[BARE, OURS, ADVISORY]), &plan)?;
    turns::contended(&at(&direct, &[ADVISORY, LISTENING, OURS]), &plan)?;
    turns::holding("statements", &server.url_at(proxy.port()), &proxy, &plan)
}

/// A way to lock on PostgreSQL.
#[derive(Clone)]
enum Way {
    Leasehold(leasehold::Client),
    /// Statements that the server keeps by name.
    Named(Pool),
    /// Statements that are sent whole each time, as poolers in transaction mode need them.
    Unnamed(Pool),
    /// A lock of the session.
    Advisory(Pool),
}

/// Connections with the statements to take and to free, used in turns by many tasks.
#[derive(Clone)]
struct Pool(Arc<Vec<(Client, Statement, Statement)>>);

impl Pool {
    async fn open(url: &str, [take, free]: [(&str, &[Type]); 2]) -> Result<Self> {
        let mut all = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            let take = client.prepare_typed(take.0, take.1).await?;
            let free = client.prepare_typed(free.0, free.1).await?;
            all.push((client, take, free));
        }
        Ok(Self(Arc::new(all)))
    }

    /// The same one for the same key.
    fn of(&self, key: &str) -> &(Client, Statement, Statement) {
        let sum: usize = key.bytes().map(usize::from).sum();
        &self.0[sum % CONNECTIONS]
    }
}

impl Peer for Way {
    async fn open(name: &str, url: &str) -> Result<Self> {
        const TAKEN: &[Type] = &[Type::TEXT, Type::BYTEA, Type::INT8, Type::TEXT];
        const FREED: &[Type] = &[Type::TEXT, Type::BYTEA];
        Ok(match name {
            OURS => Self::Leasehold(leasehold::Client::connect(url).await?),
            LISTENING => Self::Leasehold(leasehold::Client::connect(format!("{url}?listen=yes").as_str()).await?),
            BARE => Self::Named(Pool::open(url, [(TAKE, TAKEN), (FREE, FREED)]).await?),
            // It uses neither.
            UNNAMED => Self::Unnamed(Pool::open(url, [("SELECT 1", &[]), ("SELECT 1", &[])]).await?),
            ADVISORY => Self::Advisory(Pool::open(url, [(LOCK, &[Type::TEXT]), (UNLOCK, &[Type::TEXT])]).await?),
            other => return Err(format!("no such peer: {other}").into()),
        })
    }

    async fn lock(&mut self, key: &str, hold: Duration) -> Held {
        let nonce = [7_u8; 16].as_slice();
        let ttl = i64::try_from(TTL.as_micros()).unwrap_or(i64::MAX);
        let taking: [&(dyn ToSql + Sync); 4] = [&key, &nonce, &ttl, &"bare"];
        match self {
            Self::Leasehold(client) => {
                let lease = client.lock(key).ttl(TTL).await.map_err(|error| error.to_string())?;
                let times = held(hold).await;
                lease.release().await.map_err(|error| error.to_string())?;
                Ok(times)
            }
            Self::Named(pool) => {
                let (client, take, free) = pool.of(key);
                one_row(client.query(take, &taking).await)?;
                let times = held(hold).await;
                one_row(client.query(free, &taking[..2]).await)?;
                Ok(times)
            }
            Self::Unnamed(pool) => {
                let (client, ..) = pool.of(key);
                let types = [Type::TEXT, Type::BYTEA, Type::INT8, Type::TEXT];
                let typed: Vec<_> = taking.into_iter().zip(types).collect();
                one_row(client.query_typed(TAKE, &typed).await)?;
                let times = held(hold).await;
                one_row(client.query_typed(FREE, &typed[..2]).await)?;
                Ok(times)
            }
            Self::Advisory(pool) => {
                let (client, take, free) = pool.of(key);
                one_row(client.query(take, &taking[..1]).await)?;
                let times = held(hold).await;
                one_row(client.query(free, &taking[..1]).await)?;
                Ok(times)
            }
        }
    }
}

fn one_row(
    rows: std::result::Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>,
) -> std::result::Result<(), String> {
    match rows.map_err(|error| format!("{error:?}"))?.len() {
        1 => Ok(()),
        _ => Err("somebody else was there".to_owned()),
    }
}
