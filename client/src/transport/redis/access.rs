//! Making connections: sockets, TLS, logins.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::select_ok;
use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::redis::Command;
use leasehold_wire::resp::Value;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};

use super::cluster::Cluster;
use super::connection::{Connection, Listening, Login, Opened, Role, Socket, Stream, greet};
use super::line::Lines;
use super::link::NoConnection;
use super::sentinel::Sentinels;
use crate::error::Error;
#[cfg(windows)]
use crate::transport::NO_SOCKET_FILES;
use crate::transport::connections::Home;
use crate::transport::info::printable;
use crate::transport::{tcp, tls};
use crate::url::redis::{Address, RedisPlace, RedisUrl};

/// The time limit for a connection, greeting included.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Makes connections to a server, or to the server that is the master at the moment.
pub(super) struct Access {
    to: To,
    entry: Arc<Entry>,
    shown: String,
    /// The last server accepted a connection, and has not answered in TLS since.
    is_mute: AtomicBool,
    lines: Option<Arc<Lines>>,
}

enum To {
    #[cfg_attr(windows, allow(dead_code, reason = "there it is an error"))]
    Socket(PathBuf),
    Host(Address),
    /// The current master.
    Master(Arc<Sentinels>),
    /// Any node of a cluster.
    Nodes(Arc<Cluster>),
}

/// The login, and the encryption of connections.
pub(super) struct Entry {
    login: Login,
    tls: Option<Arc<ClientConfig>>,
}

/// Tells if the role of the server is asked before the connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskRole {
    Yes,
    No,
}

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
            Some(Arc::new(config))
        } else {
            None
        };
        let login = Login { username: url.username.clone(), password: url.password.clone(), database: url.db };
        let to = match &url.place {
            RedisPlace::Unix { path } => To::Socket(path.clone()),
            RedisPlace::Tcp { host, port } | RedisPlace::Tls { host, port } => {
                To::Host(Address { host: host.clone(), port: *port })
            }
            RedisPlace::Cluster { seeds, .. } => To::Nodes(Arc::new(Cluster::new(seeds.clone()))),
            RedisPlace::Sentinel { sentinels, master, .. } => {
                let ours = &url.sentinel;
                let (username, password) = (ours.username.clone(), ours.password.clone());
                let login = Login { username, password, database: 0 };
                let entry = Arc::new(Entry { login, tls: tls.clone() });
                let sentinels = sentinels.iter().map(|sentinel| Self::at(&entry, sentinel)).collect();
                To::Master(Arc::new(Sentinels::new(sentinels, master.clone())))
            }
        };
        let entry = Entry { login, tls };
        let lines = match &to {
            To::Nodes(_) => None,
            To::Socket(_) | To::Host(_) | To::Master(_) => Some(Arc::new(Lines::new()?)),
        };
        Ok(Self { to, entry: Arc::new(entry), shown: url.to_string(), is_mute: AtomicBool::new(false), lines })
    }

    /// Access to one server by its address.
    pub(super) fn at(entry: &Arc<Entry>, address: &Address) -> Self {
        let to = To::Host(address.clone());
        Self { to, entry: Arc::clone(entry), shown: address.to_string(), is_mute: AtomicBool::new(false), lines: None }
    }

    /// Access to one of several servers with the same login.
    pub(super) fn beside(&self, address: &Address) -> Self {
        Self::at(&self.entry, address)
    }

    /// The lines of waiters of this server; `None` for a cluster and its nodes.
    pub(super) fn lines(&self) -> Option<&Arc<Lines>> {
        self.lines.as_ref()
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

    /// Makes a connection for requests, which `home` drives. It is made in the current runtime.
    pub(super) async fn connect(&self, home: &Home, role: AskRole) -> Result<Connection, NoConnection> {
        match &self.to {
            To::Socket(_) | To::Host(_) => self.connect_there(home, role).await,
            To::Master(sentinels) => {
                let address = sentinels.master().await?;
                let connection = self.beside(&address).connect_there(home, AskRole::Yes).await?;
                match connection.role() {
                    Some(Role::Replica | Role::Sentinel) => {
                        let detail = format!("{}: {address}, named as the master, is not a master", self.shown);
                        Err(NoConnection::Fault(Fault::new(FaultKind::Server, &detail)))
                    }
                    Some(Role::Master | Role::Unknown) | None => {
                        sentinels.found(&address);
                        Ok(connection)
                    }
                }
            }
            To::Nodes(cluster) => {
                let mut last = NoConnection::Fault(Fault::of(FaultKind::Unreachable));
                for address in cluster.everybody() {
                    match self.beside(&address).connect_there(home, role).await {
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
    pub(super) async fn connect_there(&self, home: &Home, role: AskRole) -> Result<Connection, NoConnection> {
        let mut opened = self.open().await?;
        let role = match role {
            AskRole::Yes => match tokio::time::timeout(CONNECT_PATIENCE, opened.role()).await {
                Ok(role) => Some(role.map_err(|broken| self.no_connection(&broken.to_string()))?),
                Err(_) => return Err(NoConnection::Fault(self.too_late("no answer in time"))),
            },
            AskRole::No => None,
        };
        opened.settle(home, role).map_err(NoConnection::Fault)
    }

    /// Connects to one known server for a single question, in the current runtime.
    pub(super) async fn ask_there(&self, commands: &[Command]) -> Result<Vec<Value>, NoConnection> {
        let mut opened = self.open().await?;
        opened.call(commands).await.map_err(NoConnection::Fault)
    }

    async fn listen_there(&self) -> Result<Listening, NoConnection> {
        let address = match &self.to {
            To::Host(address) => Some(address.clone()),
            To::Socket(_) | To::Master(_) | To::Nodes(_) => None,
        };
        Listening::new(self.open().await?, address).map_err(NoConnection::Fault)
    }

    /// Connects, and logs in.
    async fn open(&self) -> Result<Opened, NoConnection> {
        self.is_mute.store(false, Ordering::Relaxed);
        let open = async {
            let stream = self.reach().await.map_err(|error| self.no_connection(&error.to_string()))?;
            let mut opened = Opened::new(stream);
            self.is_mute.store(opened.is_handshaking(), Ordering::Relaxed);
            let greeted = greet(&mut opened, &self.entry.login).await;
            self.is_mute.store(opened.is_handshaking(), Ordering::Relaxed);
            greeted.map(|()| opened)
        };
        let opened = tokio::time::timeout(CONNECT_PATIENCE, open).await;
        match opened
            .unwrap_or_else(|_| Err(NoConnection::Fault(self.too_late("no connection and no greeting in time"))))
        {
            // A server that does not speak TLS, or has another certificate, shows it only now.
            Err(NoConnection::Fault(Fault { kind: FaultKind::Reset | FaultKind::Protocol, detail: Some(said) })) => {
                Err(self.no_connection(&said))
            }
            opened => opened,
        }
    }

    async fn reach(&self) -> io::Result<Stream> {
        let Address { host, port } = match &self.to {
            #[cfg(windows)]
            To::Socket(_) => return Err(io::Error::other(NO_SOCKET_FILES)),
            #[cfg(unix)]
            To::Socket(path) => {
                let socket = UnixStream::connect(path).await?.into_std()?;
                return Ok(Stream::new(Socket::Unix(socket), None));
            }
            To::Host(address) => address,
            To::Master(_) | To::Nodes(_) => return Err(io::Error::other("the address is not known")),
        };
        // The first address that answers: the others may belong to an unreachable network.
        let tries: Vec<_> = lookup_host((host.as_str(), *port)).await?.map(TcpStream::connect).collect();
        if tries.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        }
        let (socket, _) = select_ok(tries.into_iter().map(Box::pin)).await?;
        tcp::configure(&socket)?;
        let tls = match &self.entry.tls {
            Some(config) => {
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                Some(ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?)
            }
            None => None,
        };
        Ok(Stream::new(Socket::Tcp(socket.into_std()?), tls))
    }

    /// The error of a connection that was not made in time.
    pub(super) fn too_late(&self, said: &str) -> Fault {
        let advice = if self.is_mute.load(Ordering::Relaxed) { tls::NO_TLS } else { "" };
        Fault::new(FaultKind::Unreachable, &format!("{}: {said}{advice}", self.shown))
    }

    fn no_connection(&self, said: &str) -> NoConnection {
        let said = printable(said);
        let detail = format!("{}: {said}{}", self.shown, tls::advice(&said));
        NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
