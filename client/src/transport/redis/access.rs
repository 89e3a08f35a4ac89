//! Making connections: sockets, TLS, logins.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::aio::{MultiplexedConnection, PubSub, PubSubSink, PubSubStream};
use ::redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use ::redis::{AsyncConnectionConfig, ErrorKind as TheirKind, RedisConnectionInfo, RedisError};
use futures_util::future::select_ok;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_wire::redis::refusal;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

use super::cluster::Cluster;
use super::link::{NoConnection, Role, role_of};
use super::reply_limit::{LimitedSocket, ReplyLimit};
use super::sentinel::Sentinels;
use crate::error::Error;
use crate::transport::info::printable;
use crate::transport::tls;
use crate::url::redis::{Address, RedisPlace, RedisUrl};

/// The time limit for a connection, greeting included.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The time after which a peer that vanished silently is noticed, where nothing else notices it.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Makes connections to a server, or to the server that is the master at the moment.
pub(super) struct Access {
    to: To,
    entry: Arc<Entry>,
    shown: String,
    /// The last server accepted a connection, and has not answered in TLS since.
    is_mute: AtomicBool,
}

enum To {
    Socket(PathBuf),
    Host(Address),
    /// The current master.
    Master(Arc<Sentinels>),
    /// Any node of a cluster.
    Nodes(Arc<Cluster>),
}

/// The login, and the encryption of connections.
pub(super) struct Entry {
    login: RedisConnectionInfo,
    tls: Option<TlsConnector>,
}

/// A connection for requests. It closes with the last clone, even while requests are under way.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) driver: MultiplexedConnection,
    pub(super) limit: Arc<ReplyLimit>,
    task: Arc<Task>,
    role: Arc<OnceCell<Role>>,
}

/// A connection for wake-ups.
pub(super) struct Listening {
    pub(super) sink: PubSubSink,
    pub(super) stream: PubSubStream,
    pub(super) limit: Arc<ReplyLimit>,
    /// The server's address; `None` for a socket file.
    pub(super) address: Option<Address>,
}

impl Connection {
    /// Tells if the connection has ended, as far as its runtime has noticed.
    pub(super) fn is_over(&self) -> bool {
        self.task.0.is_finished()
    }

    /// The role of the server, asked once.
    pub(super) async fn role(&self) -> Role {
        *self.role.get_or_init(async || role_of(self).await).await
    }
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &RedisUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let tls = if url.is_encrypted() {
            let trusting = tls::trusting(url.tls.ca.as_deref()).map_err(wrong)?;
            let config = match (&url.tls.cert, &url.tls.key) {
                (Some(cert), Some(key)) => tls::showing(trusting, cert, key).map_err(wrong)?,
                (_, _) => trusting.with_no_client_auth(),
            };
            for host in url.hosts() {
                ServerName::try_from(host).map_err(|error| wrong(format!("{host:?}: {error}")))?;
            }
            Some(TlsConnector::from(Arc::new(config)))
        } else {
            None
        };
        let login = login_of(url.username.as_deref(), url.password.as_ref().map(|password| password.as_str()));
        let to = match &url.place {
            RedisPlace::Unix { path } => To::Socket(path.clone()),
            RedisPlace::Tcp { host, port } | RedisPlace::Tls { host, port } => {
                To::Host(Address { host: host.clone(), port: *port })
            }
            RedisPlace::Cluster { seeds, .. } => To::Nodes(Arc::new(Cluster::new(seeds.clone()))),
            RedisPlace::Sentinel { sentinels, master, .. } => {
                let ours = &url.sentinel;
                let login =
                    login_of(ours.username.as_deref(), ours.password.as_ref().map(|password| password.as_str()));
                let entry = Arc::new(Entry { login, tls: tls.clone() });
                let sentinels = sentinels.iter().map(|sentinel| Self::at(&entry, sentinel)).collect();
                To::Master(Arc::new(Sentinels::new(sentinels, master.clone())))
            }
        };
        let entry = Entry { login: login.set_db(i64::from(url.db)), tls };
        Ok(Self { to, entry: Arc::new(entry), shown: url.to_string(), is_mute: AtomicBool::new(false) })
    }

    /// Access to one server by its address.
    pub(super) fn at(entry: &Arc<Entry>, address: &Address) -> Self {
        let to = To::Host(address.clone());
        Self { to, entry: Arc::clone(entry), shown: address.to_string(), is_mute: AtomicBool::new(false) }
    }

    /// Access to one of several servers with the same login.
    pub(super) fn beside(&self, address: &Address) -> Self {
        Self::at(&self.entry, address)
    }

    /// The cluster that it leads to, if it is one.
    pub(super) fn cluster(&self) -> Option<&Arc<Cluster>> {
        match &self.to {
            To::Nodes(cluster) => Some(cluster),
            To::Socket(_) | To::Host(_) | To::Master(_) => None,
        }
    }

    /// The Sentinels that know the server's address, if there are any.
    pub(super) fn sentinels(&self) -> Option<&Arc<Sentinels>> {
        match &self.to {
            To::Master(sentinels) => Some(sentinels),
            To::Socket(_) | To::Host(_) | To::Nodes(_) => None,
        }
    }

    /// Makes a connection for requests.
    pub(super) async fn connect(&self) -> Result<Connection, NoConnection> {
        match &self.to {
            To::Socket(_) | To::Host(_) => self.connect_there().await,
            To::Master(sentinels) => {
                let address = sentinels.master().await?;
                let connection = self.beside(&address).connect_there().await?;
                match tokio::time::timeout(CONNECT_PATIENCE, connection.role()).await {
                    Ok(Role::Replica | Role::Sentinel) => {
                        let detail = format!("{}: {address}, named as the master, is not a master", self.shown);
                        Err(NoConnection::Fault(Fault::new(FaultKind::Server, &detail)))
                    }
                    Ok(Role::Master | Role::Unknown) | Err(_) => {
                        sentinels.found(&address);
                        Ok(connection)
                    }
                }
            }
            To::Nodes(cluster) => {
                let mut last = NoConnection::Fault(Fault::of(FaultKind::Unreachable));
                for address in cluster.everybody() {
                    match self.beside(&address).connect_there().await {
                        Ok(connection) => return Ok(connection),
                        Err(why) => last = why,
                    }
                }
                Err(last)
            }
        }
    }

    /// Makes a connection for wake-ups alone.
    pub(super) async fn listen(&self) -> Result<Listening, NoConnection> {
        match &self.to {
            To::Socket(_) | To::Host(_) => self.listen_there().await,
            To::Master(sentinels) => self.beside(&sentinels.master().await?).listen_there().await,
            // Each node publishes the releases of all nodes.
            To::Nodes(cluster) => {
                let mut last = NoConnection::Fault(Fault::of(FaultKind::Unreachable));
                for address in cluster.everybody() {
                    match self.beside(&address).listen_there().await {
                        Ok(listening) => return Ok(listening),
                        Err(why) => last = why,
                    }
                }
                Err(last)
            }
        }
    }

    /// Waits until wake-ups should come from another server than this one.
    pub(super) async fn turns_away_from(&self, address: Option<&Address>) {
        match (&self.to, address) {
            (To::Master(sentinels), Some(address)) => sentinels.turn_away_from(address).await,
            (To::Nodes(cluster), Some(address)) => cluster.forgets(address).await,
            (To::Socket(_) | To::Host(_), _) | (_, None) => std::future::pending().await,
        }
    }

    /// Connects to one known server, without asking for its address.
    pub(super) async fn connect_there(&self) -> Result<Connection, NoConnection> {
        let limit = ReplyLimit::new();
        let greet = async {
            let socket = LimitedSocket { socket: self.reach().await?, limit: Arc::clone(&limit) };
            // The core decides how long to wait for an answer.
            let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(1_024);
            MultiplexedConnection::new_with_config(&self.entry.login, socket, config).await
        };
        let (driver, work) = self.in_time(&limit, greet).await?;
        let task = tokio::spawn(work);
        Ok(Connection { driver, limit, task: Arc::new(Task(task.abort_handle())), role: Arc::default() })
    }

    async fn listen_there(&self) -> Result<Listening, NoConnection> {
        let limit = ReplyLimit::new();
        let greet = async {
            let socket = LimitedSocket { socket: self.reach().await?, limit: Arc::clone(&limit) };
            PubSub::new(&self.entry.login, socket).await
        };
        let (sink, stream) = self.in_time(&limit, greet).await?.split();
        limit.reset();
        let address = match &self.to {
            To::Host(address) => Some(address.clone()),
            To::Socket(_) | To::Master(_) | To::Nodes(_) => None,
        };
        Ok(Listening { sink, stream, limit, address })
    }

    async fn in_time<R>(
        &self,
        limit: &ReplyLimit,
        greet: impl Future<Output = ::redis::RedisResult<R>>,
    ) -> Result<R, NoConnection> {
        let Ok(greeted) = tokio::time::timeout(CONNECT_PATIENCE, greet).await else {
            return Err(NoConnection::Fault(self.too_late("no connection and no greeting in time")));
        };
        let greeted = greeted.map_err(|error| self.no_connection(&error, limit))?;
        limit.end_greeting();
        Ok(greeted)
    }

    async fn reach(&self) -> io::Result<Box<dyn Socket>> {
        let Address { host, port } = match &self.to {
            To::Socket(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            To::Host(address) => address,
            To::Master(_) | To::Nodes(_) => return Err(io::Error::other("the address is not known")),
        };
        // The first address that answers: the others may belong to an unreachable network.
        let tries: Vec<_> = lookup_host((host.as_str(), *port)).await?.map(TcpStream::connect).collect();
        if tries.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        }
        let (socket, _) = select_ok(tries.into_iter().map(Box::pin)).await?;
        socket.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
        SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
        match &self.entry.tls {
            Some(connector) => {
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                self.is_mute.store(true, Ordering::Relaxed);
                let socket = connector.connect(name, socket).await;
                self.is_mute.store(false, Ordering::Relaxed);
                Ok(Box::new(socket?))
            }
            None => Ok(Box::new(socket)),
        }
    }

    /// The error of a connection that was not made in time.
    pub(super) fn too_late(&self, said: &str) -> Fault {
        let advice = if self.is_mute.load(Ordering::Relaxed) { tls::NO_TLS } else { "" };
        Fault::new(FaultKind::Unreachable, &format!("{}: {said}{advice}", self.shown))
    }

    fn no_connection(&self, error: &RedisError, limit: &ReplyLimit) -> NoConnection {
        let said = match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => error.to_string(),
        };
        let said = printable(&said);
        if error.code().is_some()
            && let Some(refusal) = refusal(&said)
        {
            return NoConnection::Refused(refusal);
        }
        if error.kind() == TheirKind::AuthenticationFailed {
            return NoConnection::Refused(refused_login(&said, &limit.greeting_errors()));
        }
        let detail = format!("{}: {said}{}", self.shown, tls::advice(&said));
        NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
    }
}

fn login_of(username: Option<&str>, password: Option<&str>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default().set_lib_name("leasehold", env!("CARGO_PKG_VERSION"));
    if let Some(username) = username {
        login = login.set_username(username);
    }
    if let Some(password) = password {
        login = login.set_password(password);
    }
    login
}

/// The server's words when it refused a login; the driver only reports the refusal.
fn refused_login(driver: &str, words: &[String]) -> Refusal {
    // After a refused login come errors that it is missing; the driver has handled Redis 5's error about a user name.
    let passing = |error: &&String| !error.starts_with("NOAUTH") && !error.contains("wrong number of arguments");
    let said = words.iter().find(passing).or_else(|| words.first()).map(|said| printable(said));
    match said {
        Some(said) => refusal(&said).unwrap_or_else(|| {
            let detail = format!("the server refuses user and password of the store url: {said}");
            Refusal::Denied(Denial::new(DenialKind::Permission, &detail))
        }),
        None => {
            let detail = format!("{driver}; check user and password in the store url, and the server's ACL");
            Refusal::Denied(Denial::new(DenialKind::Permission, &detail))
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
