//! One connection: how it is made, and one statement at a time on it.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};
use leasehold_wire::errors::login_refused_again;
use leasehold_wire::postgres::{Answer, Field, Param, ServerError, Statement};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, SimpleQueryMessage};
use tokio_rustls::TlsConnector;

use super::prepared::{Ends, Prepared};
use crate::error::Error;
#[cfg(windows)]
use crate::transport::NO_SOCKET_FILES;
use crate::transport::readiness::{CONNECT_PATIENCE, NoServer};
use crate::transport::tcp::Tried;
use crate::transport::{tcp, tls};
use crate::url::postgres::{PostgresPlace, PostgresUrl, Tls};

/// The routine of the server that gives up waiting for a replica, after the commit.
const GAVE_UP_REPLICATION: &str = "SyncRepWaitForLSN";

/// How to make connections to one server.
pub(super) struct PostgresAccess {
    url: PostgresUrl,
    config: Config,
    /// Made once, since reading the certificates of the system takes 20 ms; connections share them, and TLS sessions.
    tls: Option<Arc<ClientConfig>>,
    /// A server has let this client in.
    was_let_in: AtomicBool,
}

/// A session of the server's, or a pooler's. Dropping it says goodbye.
pub(super) struct Connection {
    client: Client,
    /// Set where the server has committed, and then gave up waiting for a replica.
    doubted: Arc<AtomicBool>,
    /// The server has said that it takes no writes, while another one may.
    leads_elsewhere: AtomicBool,
    driver: JoinHandle<()>,
    prepared: Prepared,
}

/// Receives what a server says of its own accord.
pub(super) type Told = Arc<dyn Fn(AsyncMessage) + Send + Sync>;

impl PostgresAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &PostgresUrl) -> Result<Self, Error> {
        let tls = match &url.tls {
            Tls::Off => None,
            Tls::On { ca } => {
                let config = tls::config(ca.as_deref(), None);
                Some(Arc::new(config.map_err(|what| Error::config(format!("{url}: {what}")))?))
            }
        };
        let mut config = Config::new();
        config.user(&url.user).dbname(&url.database).application_name(&url.application);
        if let Some(options) = &url.options {
            config.options(options);
        }
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        if let Some(password) = &url.password {
            config.password(password.as_bytes());
        }
        Ok(Self { url: url.clone(), config, tls, was_let_in: AtomicBool::new(false) })
    }

    pub(super) const fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// Connects to the server of the url.
    ///
    /// # Errors
    /// No server, or it does not let this user in.
    pub(super) async fn connect(&self) -> Result<Connection, NoServer> {
        self.connect_to(&self.url.place, None).await
    }

    /// Connects to a server, whose notifications are handed to `told`.
    ///
    /// # Errors
    /// As [`PostgresAccess::connect`].
    pub(super) async fn connect_to(&self, place: &PostgresPlace, told: Option<Told>) -> Result<Connection, NoServer> {
        let connected = match place {
            #[cfg(windows)]
            PostgresPlace::Unix { .. } => Err(self.unreachable(&io::Error::other(NO_SOCKET_FILES))),
            #[cfg(unix)]
            PostgresPlace::Unix { folder, port } => {
                let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await;
                let connected = self.config.connect_raw(socket.map_err(|error| self.unreachable(&error))?, NoTls).await;
                let (client, connection) = connected.map_err(|error| self.refused(&error))?;
                Ok(Connection::start(client, connection, told, None))
            }
            PostgresPlace::Tcp { host, port } => {
                let addresses = tcp::addresses(host, *port).await.map_err(|error| self.unreachable(&error))?;
                self.connect_first(host, &addresses, told).await
            }
        }?;
        self.was_let_in.store(true, Ordering::Relaxed);
        Ok(connected)
    }

    /// Connects to the first of these addresses that leads to a server which takes writes.
    async fn connect_first(
        &self,
        host: &str,
        addresses: &[SocketAddr],
        told: Option<Told>,
    ) -> Result<Connection, NoServer> {
        let enter = |socket| {
            let told = told.clone();
            async move {
                match self.enter(host, socket, told).await {
                    // A single address leads where it leads.
                    Ok(connection) if addresses.len() > 1 && connection.is_read_only().await => {
                        Tried::Spare(connection)
                    }
                    Ok(connection) => Tried::Good(connection),
                    Err(why) => Tried::Bad(why),
                }
            }
        };
        let entering = tcp::first_good(addresses, CONNECT_PATIENCE, |error| self.unreachable(&error), enter);
        let silent = || self.unreachable(&io::Error::new(io::ErrorKind::TimedOut, "no connection in time"));
        entering.await.map_err(|why| why.unwrap_or_else(silent))
    }

    async fn enter(&self, host: &str, socket: TcpStream, told: Option<Told>) -> Result<Connection, NoServer> {
        let ends = Ends::of(&socket);
        match &self.tls {
            None => {
                let connected = self.config.connect_raw(socket, NoTls).await;
                let (client, connection) = connected.map_err(|error| self.refused(&error))?;
                Ok(Connection::start(client, connection, told, ends))
            }
            Some(tls) => {
                let handshake = Handshake { tls: Arc::clone(tls), host: host.to_owned() };
                let connected = self.config.connect_raw(socket, handshake).await;
                let (client, connection) = connected.map_err(|error| self.refused(&error))?;
                Ok(Connection::start(client, connection, told, ends))
            }
        }
    }

    fn unreachable(&self, error: &io::Error) -> NoServer {
        let (said, server) = (error.to_string(), &self.url);
        let fault = Fault::new(FaultKind::Unreachable, &format!("{server}: {said}{}", tls::advice(&said)));
        NoServer::Fault(fault)
    }

    fn refused(&self, error: &tokio_postgres::Error) -> NoServer {
        if let Some(error) = error.as_db_error() {
            let refusal = server_error(error).refusal();
            let was_let_in = self.was_let_in.load(Ordering::Relaxed);
            return NoServer::Refused(if was_let_in { login_refused_again(refusal) } else { refusal });
        }
        let (said, server) = (innermost(error), &self.url);
        if said.contains("server does not support TLS") {
            let detail = format!("{server}: {said}; write sslmode=disable where the network is trusted");
            return NoServer::Refused(Refusal::Denied(Denial::new(DenialKind::Other, &detail)));
        }
        if said.contains("password missing") || said.contains("authentication") {
            let detail = format!("{server}: {said}: put the password into the url");
            return NoServer::Refused(Refusal::Denied(Denial::new(DenialKind::Permission, &detail)));
        }
        NoServer::Fault(Fault::new(FaultKind::Unreachable, &format!("{server}: {said}{}", tls::advice(&said))))
    }
}

impl Connection {
    fn start<S, T>(
        client: Client,
        mut connection: tokio_postgres::Connection<S, T>,
        told: Option<Told>,
        ends: Option<Ends>,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let doubted = Arc::new(AtomicBool::new(false));
        let doubt = Arc::clone(&doubted);
        let driver = tokio::spawn(async move {
            // An error ends the statement that is under way, which tells.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if matches!(&message, AsyncMessage::Notice(notice) if notice.routine() == Some(GAVE_UP_REPLICATION)) {
                    doubt.store(true, Ordering::Relaxed);
                }
                if let Some(told) = &told {
                    told(message);
                }
            }
        });
        Self { client, doubted, leads_elsewhere: AtomicBool::new(false), driver, prepared: Prepared::over(ends) }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Sends a statement: by its name where the server itself keeps it, or else unnamed and complete, as poolers in
    /// transaction mode need it.
    pub(super) async fn query(&self, statement: &Statement) -> Answer {
        let rows = self.rows(statement).await.map_err(|error| self.outcome(&error))?;
        if self.doubted.swap(false, Ordering::Relaxed) {
            let detail = "committed, but the wait for a synchronous replica was cancelled";
            return Err(Outcome::Unknown(Fault::new(FaultKind::Server, detail)));
        }
        Ok(rows.iter().map(fields).collect())
    }

    async fn rows(&self, statement: &Statement) -> Result<Vec<Row>, tokio_postgres::Error> {
        let params: Vec<_> = statement.params.iter().map(parameter).collect();
        let (values, types): (Vec<_>, Vec<_>) = params.iter().cloned().unzip();
        if let Some(kept) = self.prepared.find(&self.client, &statement.sql, &types).await {
            match self.client.query(&kept, &values).await {
                Err(error) if self.prepared.is_outdated(&statement.sql, &error) => {}
                answer => return answer,
            }
        }
        self.client.query_typed(&statement.sql, &params).await
    }

    /// Runs statements without parameters.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Outcome> {
        self.client.batch_execute(sql).await.map_err(|error| self.outcome(&error))
    }

    fn outcome(&self, error: &tokio_postgres::Error) -> Outcome {
        if error.as_db_error().is_some_and(|error| server_error(error).leads_elsewhere()) {
            self.leads_elsewhere.store(true, Ordering::Relaxed);
        }
        outcome(error)
    }

    /// Tells if the server has said that it takes no writes: then no other connection to it is of use.
    pub(super) fn leads_elsewhere(&self) -> bool {
        self.leads_elsewhere.load(Ordering::Relaxed)
    }

    /// Tells if the server takes no writes, where that can be asked.
    async fn is_read_only(&self) -> bool {
        let asked = self.client.simple_query("SHOW transaction_read_only").await;
        let says_on = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.try_get(0).is_ok_and(|said| said == Some("on")));
        asked.is_ok_and(|messages| messages.iter().any(says_on))
    }

    /// Waits until the connection has ended.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.driver).await;
    }

    /// Closes it at once, since a reply may still come.
    pub(super) fn leave(&self) {
        self.driver.abort();
    }
}

fn outcome(error: &tokio_postgres::Error) -> Outcome {
    match error.as_db_error() {
        Some(error) => server_error(error).outcome(),
        None if error.is_closed() => Outcome::Unknown(Fault::of(FaultKind::Reset)),
        None => Outcome::Unknown(Fault::new(FaultKind::Reset, &innermost(error))),
    }
}

fn server_error(error: &tokio_postgres::error::DbError) -> ServerError<'_> {
    let severity = error.parsed_severity();
    let ends_session = match severity {
        Some(severity) => {
            matches!(severity, tokio_postgres::error::Severity::Fatal | tokio_postgres::error::Severity::Panic)
        }
        None => matches!(error.severity(), "FATAL" | "PANIC"),
    };
    ServerError { code: error.code().code(), message: error.message(), ends_session }
}

fn innermost(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn parameter(param: &Param) -> (&(dyn ToSql + Sync), Type) {
    match param {
        Param::Text(text) => (text, Type::TEXT),
        Param::Bytea(bytes) => (bytes, Type::BYTEA),
        Param::Int8(number) => (number, Type::INT8),
        Param::Bool(value) => (value, Type::BOOL),
        Param::TextArray(texts) => (texts, Type::TEXT_ARRAY),
        Param::ByteaArray(all) => (all, Type::BYTEA_ARRAY),
        Param::Int8Array(numbers) => (numbers, Type::INT8_ARRAY),
    }
}

/// The columns of a row. A value of a type that no statement of ours returns is `Null`.
fn fields(row: &Row) -> Vec<Field> {
    let columns = row.columns().iter().enumerate();
    let read = |(at, column): (usize, &tokio_postgres::Column)| match *column.type_() {
        Type::TEXT | Type::NAME => row.try_get(at).ok().flatten().map(Field::Text),
        Type::BYTEA => row.try_get(at).ok().flatten().map(Field::Bytes),
        Type::INT8 => row.try_get(at).ok().flatten().map(Field::Int),
        Type::BOOL => row.try_get(at).ok().flatten().map(Field::Bool),
        _ => None,
    };
    columns.map(|column| read(column).unwrap_or(Field::Null)).collect()
}

/// A TLS handshake to come.
struct Handshake {
    tls: Arc<ClientConfig>,
    host: String,
}

struct Encrypted(tokio_rustls::client::TlsStream<TcpStream>);

impl TlsConnect<TcpStream> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move {
            let host = self.host.trim_matches(['[', ']']).to_owned();
            let name =
                ServerName::try_from(host).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            TlsConnector::from(self.tls).connect(name, stream).await.map(Encrypted)
        })
    }
}

impl TlsStream for Encrypted {
    /// The certificate is verified already.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use leasehold_servers::postgres::Server;

    use super::*;

    #[test]
    fn a_name_that_lists_a_standby_first_leads_to_the_primary() {
        let primary = Server::start();
        let standby = primary.standby();
        let access = PostgresAccess::new(&PostgresUrl::parse(&primary.url()).unwrap()).unwrap();
        let takes_writes = async |servers: [&Server; 2]| {
            let connection = access.connect_first("127.0.0.1", &servers.map(Server::address), None).await;
            !connection.ok().unwrap().is_read_only().await
        };
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            assert!(takes_writes([&standby, &primary]).await && takes_writes([&primary, &standby]).await);
            assert!(!takes_writes([&standby, &standby]).await, "looking is allowed there");
        });
    }
}
