//! Making connections: sockets, TLS, logins.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::errors::login_refused_again;
use leasehold_wire::redis::Command;
use leasehold_wire::resp::Value;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::cluster::Cluster;
use super::connection::{Connection, Courtesy, Listening, Login, Opened, Role, Socket, Stream, greet};
use super::link::NoConnection;
use super::queue::Queues;
use super::sentinel::Sentinels;
use crate::error::Error;
use crate::host::sync::Mutex;
#[cfg(windows)]
use crate::transport::NO_SOCKET_FILES;
use crate::transport::connections::Home;
use crate::transport::info::printable;
use crate::transport::tcp::Tried;
use crate::transport::{tcp, tls};
use crate::url::redis::{Address, RedisPlace, RedisUrl};

pub(super) use crate::transport::pauses::CONNECT_PATIENCE;

/// Makes connections to a server, or to the server that is the master at the moment.
pub(super) struct RedisAccess {
    to: To,
    entry: Arc<Entry>,
    shown: String,
    /// The last server accepted a connection, and has not answered in TLS since.
    is_mute: AtomicBool,
    queues: Option<Arc<Queues>>,
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
    /// The servers that have let this client in.
    let_in: Mutex<HashSet<String>>,
    /// The part of the [`Courtesy`] that was left out at the last connection.
    left_out: AtomicU8,
}

impl Entry {
    fn new(login: Login, tls: Option<Arc<ClientConfig>>) -> Arc<Self> {
        Arc::new(Self { login, tls, let_in: Mutex::default(), left_out: AtomicU8::new(0) })
    }
}

/// Tells if the role of the server is asked before the connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskRole {
    Yes,
    No,
}

impl RedisAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &RedisUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let tls = if url.is_encrypted() {
            let config = tls::config(url.tls.ca.as_deref(), url.tls.cert.as_deref().zip(url.tls.key.as_deref()));
            let config = config.map_err(wrong)?;
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
                let entry = Entry::new(login, tls.clone());
                let sentinels = sentinels.iter().map(|sentinel| Self::at(&entry, sentinel)).collect();
                To::Master(Arc::new(Sentinels::new(sentinels, master.clone())))
            }
        };
        let entry = Entry::new(login, tls);
        let queues = match &to {
            To::Nodes(_) => None,
            To::Socket(_) | To::Host(_) | To::Master(_) => Some(Arc::new(Queues::new()?)),
        };
        Ok(Self { to, entry, shown: url.to_string(), is_mute: AtomicBool::new(false), queues })
    }

    /// Access to one server by its address.
    pub(super) fn at(entry: &Arc<Entry>, address: &Address) -> Self {
        let to = To::Host(address.clone());
        Self { to, entry: Arc::clone(entry), shown: address.to_string(), is_mute: AtomicBool::new(false), queues: None }
    }

    /// Access to one of several servers with the same login.
    pub(super) fn beside(&self, address: &Address) -> Self {
        Self::at(&self.entry, address)
    }

    /// The queues of waiters of this server; `None` for a cluster and its nodes.
    pub(super) fn queues(&self) -> Option<&Arc<Queues>> {
        self.queues.as_ref()
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
                let connection = self.beside(&address).connect_there(home, AskRole::Yes).await;
                let connection = connection.map_err(|why| match (why, sentinels.silent()) {
                    (NoConnection::Fault(fault), Some(gone)) => NoConnection::Fault(Fault::new(
                        fault.kind,
                        &format!("{}{gone}", fault.detail.unwrap_or_default()),
                    )),
                    (why @ (NoConnection::Fault(_) | NoConnection::Refused(_)), _) => why,
                })?;
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
        let (opened, role) = self.open(role).await?;
        opened.settle(home, role).map_err(NoConnection::Fault)
    }

    /// Connects to one known server for a single question, in the current runtime.
    pub(super) async fn ask_there(&self, commands: &[Command]) -> Result<Vec<Value>, NoConnection> {
        let (mut opened, _) = self.open(AskRole::No).await?;
        opened.call(commands).await.map_err(NoConnection::Fault)
    }

    async fn listen_there(&self) -> Result<Listening, NoConnection> {
        let address = match &self.to {
            To::Host(address) => Some(address.clone()),
            To::Socket(_) | To::Master(_) | To::Nodes(_) => None,
        };
        Listening::new(self.open(AskRole::No).await?.0, address).map_err(NoConnection::Fault)
    }

    /// Connects, and logs in. Proxies close connections on commands that they do not know: then it is tried again without
    /// what is not needed.
    async fn open(&self, role: AskRole) -> Result<(Opened, Option<Role>), NoConnection> {
        let mut courtesy = Courtesy::from(self.entry.left_out.load(Ordering::Relaxed));
        loop {
            let opened = self.open_once(role, courtesy).await;
            let is_all = role == AskRole::No && courtesy != Courtesy::Full;
            match (&opened, courtesy.less().filter(|_| !is_all)) {
                (Err(NoConnection::Fault(Fault { kind: FaultKind::Reset, .. })), Some(less)) => courtesy = less,
                (Ok(_), _) => {
                    self.entry.let_in.lock().insert(self.shown.clone());
                    self.entry.left_out.fetch_max(courtesy.into(), Ordering::Relaxed);
                    return opened;
                }
                (Err(_), _) => {
                    self.entry.left_out.store(0, Ordering::Relaxed);
                    return opened.map_err(|why| match why {
                        NoConnection::Fault(Fault { kind: FaultKind::Reset, detail: Some(said) }) => {
                            self.no_connection(&said)
                        }
                        why @ (NoConnection::Fault(_) | NoConnection::Refused(_)) => why,
                    });
                }
            }
        }
    }

    async fn open_once(&self, role: AskRole, courtesy: Courtesy) -> Result<(Opened, Option<Role>), NoConnection> {
        self.is_mute.store(false, Ordering::Relaxed);
        let silent = || NoConnection::Fault(self.too_late("no connection and no greeting in time"));
        let address = match &self.to {
            #[cfg(windows)]
            To::Socket(_) => return Err(self.no_connection(NO_SOCKET_FILES)),
            #[cfg(unix)]
            To::Socket(path) => {
                let entering = async {
                    let socket = UnixStream::connect(path).await.and_then(UnixStream::into_std);
                    let socket = socket.map_err(|error| self.no_connection(&error.to_string()))?;
                    self.enter(Stream::new(Socket::Unix(socket), None), role, courtesy).await
                };
                return tokio::time::timeout(CONNECT_PATIENCE, entering).await.unwrap_or_else(|_| Err(silent()));
            }
            To::Host(address) => address,
            To::Master(_) | To::Nodes(_) => return Err(self.no_connection("the address is not known")),
        };
        let looking = tokio::time::timeout(CONNECT_PATIENCE, tcp::addresses(&address.host, address.port));
        let addresses = looking.await.map_err(|_| silent())?;
        let addresses = addresses.map_err(|error| self.no_connection(&error.to_string()))?;
        self.open_first(&addresses, role, courtesy).await
    }

    /// Connects to the first of these addresses that leads to a master.
    async fn open_first(
        &self,
        addresses: &[SocketAddr],
        role: AskRole,
        courtesy: Courtesy,
    ) -> Result<(Opened, Option<Role>), NoConnection> {
        let wrong = |error: io::Error| self.no_connection(&error.to_string());
        let enter = |socket| async move {
            let entered = match self.secured(socket) {
                Ok(stream) => self.enter(stream, role, courtesy).await,
                Err(error) => Err(wrong(error)),
            };
            match entered {
                Ok(opened @ (_, Some(Role::Replica | Role::Sentinel))) => Tried::Spare(opened),
                Ok(opened) => Tried::Good(opened),
                Err(why) => Tried::Bad(why),
            }
        };
        let entering = tcp::first_good(addresses, CONNECT_PATIENCE, wrong, enter);
        let silent = || NoConnection::Fault(self.too_late("no connection and no greeting in time"));
        entering.await.map_err(|why| why.unwrap_or_else(silent))
    }

    /// Logs in, and asks for the role.
    async fn enter(
        &self,
        stream: Stream,
        role: AskRole,
        courtesy: Courtesy,
    ) -> Result<(Opened, Option<Role>), NoConnection> {
        let mut opened = Opened::new(stream);
        self.is_mute.store(opened.is_handshaking(), Ordering::Relaxed);
        let greeted = greet(&mut opened, &self.entry.login, courtesy).await;
        let is_mute = opened.is_handshaking();
        self.is_mute.store(is_mute, Ordering::Relaxed);
        match greeted {
            Ok(()) => {}
            // A server that does not speak TLS, or has another certificate, shows it only now.
            Err(NoConnection::Fault(Fault { kind, detail: Some(said) }))
                if kind == FaultKind::Protocol || kind == FaultKind::Reset && is_mute =>
            {
                return Err(self.no_connection(&said));
            }
            Err(NoConnection::Refused(refusal)) if self.entry.let_in.lock().contains(&self.shown) => {
                return Err(NoConnection::Refused(login_refused_again(refusal)));
            }
            Err(why) => return Err(why),
        }
        let role = match (role, courtesy) {
            (AskRole::No, _) => None,
            (AskRole::Yes, Courtesy::None) => Some(Role::Unknown),
            (AskRole::Yes, Courtesy::Full) => Some(opened.role().await.map_err(NoConnection::Fault)?),
            (AskRole::Yes, Courtesy::Role | Courtesy::RoleAgain) => {
                // A replica must not be taken for a master since some server has just died: this one answers, and closes only
                // when it is asked for its role.
                let lives = opened.call(&[Command::new(["PING"])]).await;
                lives.map_err(|broken| self.no_connection(&broken.to_string()))?;
                Some(opened.role().await.map_err(NoConnection::Fault)?)
            }
        };
        Ok((opened, role))
    }

    fn secured(&self, socket: TcpStream) -> io::Result<Stream> {
        let tls = match (&self.entry.tls, &self.to) {
            (Some(config), To::Host(Address { host, .. })) => {
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                Some(ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?)
            }
            (_, To::Socket(_) | To::Host(_) | To::Master(_) | To::Nodes(_)) => None,
        };
        Ok(Stream::new(Socket::Tcp(socket.into_std()?), tls))
    }

    /// The error of a connection that was not made in time.
    pub(super) fn too_late(&self, said: &str) -> Fault {
        let advice = if self.is_mute.load(Ordering::Relaxed) { tls::NO_TLS } else { "" };
        let gone = self.sentinels().and_then(|sentinels| sentinels.silent()).unwrap_or_default();
        Fault::new(FaultKind::Unreachable, &format!("{}: {said}{advice}{gone}", self.shown))
    }

    fn no_connection(&self, said: &str) -> NoConnection {
        let said = printable(said);
        let detail = format!("{}: {said}{}", self.shown, tls::advice(&said));
        NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
    }
}

impl fmt::Display for RedisAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use leasehold_servers::redis::Server;

    use super::*;

    async fn entered(access: &RedisAccess, servers: [&Server; 2]) -> Option<Role> {
        let addresses = servers.map(Server::address);
        access.open_first(&addresses, AskRole::Yes, Courtesy::Full).await.ok().unwrap().1
    }

    #[tokio::test]
    async fn a_name_that_lists_a_replica_first_leads_to_the_master() {
        let master = Server::start();
        let replica = Server::builder().replica_of(&master).start();
        master.wait_replicas_in_sync(1);
        let access = RedisAccess::new(&RedisUrl::parse(&master.url()).unwrap()).unwrap();
        for servers in [[&replica, &master], [&master, &replica]] {
            assert_eq!(entered(&access, servers).await, Some(Role::Master));
        }
        assert_eq!(entered(&access, [&replica, &replica]).await, Some(Role::Replica), "looking is allowed there");
    }
}
