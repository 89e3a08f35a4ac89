//! Statements that the server keeps by name for one connection, so that it does not parse and plan them each time.
//!
//! Behind a pooler in transaction mode a name means nothing, or another client's statement. So a statement is prepared only
//! where the server sees the very address and port from which this machine has connected.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use crate::host::sync::Mutex;

/// A statement is prepared at this use of it: a process that takes one lock gains nothing.
const OFTEN: u32 = 3;
/// The most statements that are counted. There are fewer texts.
const MOST: usize = 32;
/// The ends of the connection that the server has. They are NULL for a Unix socket.
const ENDS: &str = "SELECT host(inet_client_addr()), inet_client_port()::bigint, inet_server_port()::bigint";

/// The address and port of this machine, and the port of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    ours: (IpAddr, u16),
    server_port: u16,
}

impl Ends {
    /// `None` for a socket that has none.
    pub(super) fn of(socket: &TcpStream) -> Option<Self> {
        let (ours, theirs) = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        Some(Self { ours: place(ours), server_port: theirs.port() })
    }

    /// Asks the server for its view of them.
    async fn are_seen_by(&self, client: &Client) -> bool {
        let seen = client.query_typed(ENDS, &[]).await.ok().and_then(|rows| {
            let row = rows.first()?;
            let address: IpAddr = row.try_get::<_, Option<&str>>(0).ok()??.parse().ok()?;
            let port = |at| u16::try_from(row.try_get::<_, Option<i64>>(at).ok()??).ok();
            Some(Self { ours: place((address, port(1)?).into()), server_port: port(2)? })
        });
        seen == Some(*self)
    }
}

/// Without the scope of a link-local address, which servers do not tell.
fn place(end: SocketAddr) -> (IpAddr, u16) {
    (end.ip().to_canonical(), end.port())
}

/// The statements of one connection.
pub(super) struct Prepared {
    state: Mutex<State>,
}

enum State {
    /// A pooler may stand in between.
    Never,
    /// Nobody has asked the server yet.
    Unknown(Ends, HashMap<String, Use>),
    Direct(HashMap<String, Use>),
}

enum Use {
    Counted(u32),
    Kept(Statement),
}

impl Prepared {
    pub(super) fn over(ends: Option<Ends>) -> Self {
        Self { state: Mutex::new(ends.map_or(State::Never, |ends| State::Unknown(ends, HashMap::new()))) }
    }

    /// The statement by its name, if it is used often.
    pub(super) async fn find(&self, client: &Client, sql: &str, types: &[Type]) -> Option<Statement> {
        let unproven = match &mut *self.state.lock() {
            State::Never => return None,
            State::Unknown(ends, uses) => is_due(uses, sql)?.map_or(Some(*ends), |_| None),
            State::Direct(uses) => match is_due(uses, sql)? {
                Some(kept) => return Some(kept),
                None => None,
            },
        };
        if let Some(ends) = unproven {
            let is_direct = ends.are_seen_by(client).await;
            *self.state.lock() = if is_direct { State::Direct(HashMap::new()) } else { State::Never };
            if !is_direct {
                return None;
            }
        }
        let kept = client.prepare_typed(sql, types).await.ok()?;
        self.put(sql, Use::Kept(kept.clone()));
        Some(kept)
    }

    /// Tells if a statement failed for being kept, before it did anything. Then it is no longer used by its name.
    pub(super) fn is_outdated(&self, sql: &str, error: &tokio_postgres::Error) -> bool {
        // The name is gone, or the table has other columns now.
        let codes = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::FEATURE_NOT_SUPPORTED];
        let is_outdated = error.code().is_some_and(|code| codes.contains(code));
        if is_outdated {
            self.put(sql, Use::Counted(0));
        }
        is_outdated
    }

    fn put(&self, sql: &str, state: Use) {
        if let State::Direct(uses) = &mut *self.state.lock() {
            uses.insert(sql.to_owned(), state);
        }
    }
}

/// Counts a use. `None` if the statement is not to be prepared yet, or else what is kept of it.
#[expect(clippy::option_option, reason = "used once")]
fn is_due(uses: &mut HashMap<String, Use>, sql: &str) -> Option<Option<Statement>> {
    match uses.get_mut(sql) {
        Some(Use::Kept(kept)) => Some(Some(kept.clone())),
        Some(Use::Counted(count)) => {
            *count += 1;
            (*count >= OFTEN).then(|| {
                *count = 0;
                None
            })
        }
        None => {
            if uses.len() < MOST {
                uses.insert(sql.to_owned(), Use::Counted(1));
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_servers::postgres::{Pooler, Server};
    use leasehold_wire::postgres::{Field, Statement};

    use super::super::connection::{Connection, PostgresAccess};
    use crate::url::postgres::PostgresUrl;

    fn on<R>(url: &str, work: impl AsyncFnOnce(Connection) -> R) -> R {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let access = PostgresAccess::new(&PostgresUrl::parse(url).unwrap()).unwrap();
            work(access.connect().await.unwrap()).await
        })
    }

    async fn ask(connection: &Connection, sql: &str) -> Vec<Vec<Field>> {
        connection.query(&Statement { sql: sql.to_owned(), params: Vec::new() }).await.unwrap()
    }

    #[test]
    fn only_the_server_itself_keeps_statements() {
        let server = Server::with(&["log_statement=all"]);
        let pooler = Pooler::start(&server);
        let unnamed = |port: u16| {
            let sql = format!("SELECT {port}::bigint");
            on(&server.url_at(port), async |connection| {
                for _ in 0..6 {
                    assert_eq!(ask(&connection, &sql).await, [[Field::Int(port.into())]]);
                }
            });
            server.log().matches(&format!("execute <unnamed>: {sql}")).count()
        };
        assert_eq!(unnamed(server.port()), 2, "{}", server.log());
        assert_eq!(unnamed(pooler.port()), 6, "{}", server.log());
    }

    #[test]
    fn a_kept_statement_that_is_outdated_is_sent_whole() {
        let server = Server::start();
        on(&server.url(), async |connection| {
            connection.run("CREATE TABLE wide (a bigint); INSERT INTO wide VALUES (1)").await.unwrap();
            for _ in 0..4 {
                assert_eq!(ask(&connection, "SELECT * FROM wide").await, [[Field::Int(1)]]);
            }
            connection.run("ALTER TABLE wide ADD b bigint DEFAULT 2").await.unwrap();
            assert_eq!(ask(&connection, "SELECT * FROM wide").await, [[Field::Int(1), Field::Int(2)]]);
            for _ in 0..4 {
                ask(&connection, "SELECT 7::bigint").await;
            }
            connection.run("DEALLOCATE ALL").await.unwrap();
            assert_eq!(ask(&connection, "SELECT 7::bigint").await, [[Field::Int(7)]]);
        });
    }
}
