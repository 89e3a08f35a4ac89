//! Real Redis servers.
//!
//! A [`Server`] listens on 127.0.0.1 and keeps nothing on disk by default. Each call uses a connection of its own.

mod builder;
mod cluster;
mod sentinel;
pub(crate) mod tls;

pub use builder::Builder;
pub use cluster::Cluster;
pub use sentinel::Watched;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tempfile::TempDir;

use crate::clock::Clock;
use crate::process::{Daemon, Sight, Taken, controls};
use crate::resp::{Connection, Reply};
use crate::{PATIENCE, ports, wait_until};
pub(crate) use builder::Credentials;

/// The data of a server after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The data in its folder. By default there is none; see [`Builder::appendonly`].
    Kept,
    /// An empty folder.
    Lost,
}

/// A real Redis server of a test's own. Dropped, it is stopped and its data removed.
///
/// # Panics
///
/// Every method panics where it cannot do what it says, and shows what the server wrote last.
#[derive(Debug)]
pub struct Server {
    daemon: Mutex<Daemon>,
    options: Builder,
    admin: Credentials,
    port: u16,
    tls: Option<tls::Tls>,
    clock: Option<Clock>,
    /// Below the fields that use it: removed after the server has ended.
    folder: TempDir,
}

controls!(Server);

impl Server {
    /// Starts a server without any option.
    #[track_caller]
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    #[track_caller]
    fn from(options: Builder) -> Self {
        let folder = crate::process::folder();
        let admin = options.prepare(folder.path());
        let mut tls = options.tls.then(|| tls::Tls::new(folder.path()));
        let clock = options.clock.then(|| Clock::new(folder.path()));
        for _ in 0..10 {
            let port = ports::free();
            if let Some(tls) = &mut tls {
                tls.port = ports::free();
            }
            let mut command = options.command(folder.path(), port, tls.as_ref());
            if let Some(clock) = &clock {
                clock.install(&mut command);
            }
            let mut daemon = Daemon::spawn(builder::PROGRAM, command, &folder.path().join("log"));
            let pid = daemon.pid();
            if daemon.wait_until_ready(|| look(port, &admin, pid)).is_ok() {
                return Self { daemon: Mutex::new(daemon), options, admin, port, tls, clock, folder };
            }
        }
        panic!("every port that was free a moment ago was taken when redis-server came to it");
    }

    /// The port on 127.0.0.1. It stays the same when the server is started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        at(self.port)
    }

    /// The url for clients, with the password if there is one: `redis://:password@127.0.0.1:port/`.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The url with another port: that of a [`Proxy`](crate::proxy::Proxy) in front.
    pub fn url_at(&self, port: u16) -> String {
        format!("redis://{}127.0.0.1:{port}/", self.options.userinfo())
    }

    /// The url for clients that speak TLS; they must trust [`Self::authority_pem`]. For a server built with
    /// [`Builder::tls`].
    #[track_caller]
    pub fn tls_url(&self) -> String {
        format!("rediss://{}127.0.0.1:{}/", self.options.userinfo(), self.tls().port)
    }

    /// The certificate of the authority that signed the server's, as PEM.
    #[track_caller]
    pub fn authority_pem(&self) -> &str {
        &self.tls().authority_pem
    }

    /// Replaces the files for TLS, the authority's too. The server has the new ones after a [restart](Self::restart).
    #[track_caller]
    pub fn rotate_tls(&self) {
        let _ = self.tls();
        let _ = tls::Tls::new(self.folder.path());
    }

    /// A file with [`Self::authority_pem`], or with what has [come later](Self::rotate_tls).
    #[track_caller]
    pub fn authority_file(&self) -> &Path {
        &self.tls().authority
    }

    /// The path of the Unix socket. For a server built with [`Builder::unix_socket`].
    #[track_caller]
    pub fn socket_path(&self) -> PathBuf {
        assert!(self.options.unix_socket, "this server was built without `unix_socket()`");
        builder::socket_path(self.folder.path())
    }

    /// Starts the server again on the same port with the same options, after ending it at once if it still runs.
    #[track_caller]
    pub fn restart(&self, data: Data) {
        let mut daemon = self.daemon();
        daemon.kill();
        let folder = self.folder.path();
        match data {
            Data::Kept => {}
            Data::Lost => {
                let gone = fs::remove_dir_all(builder::data_path(folder));
                gone.unwrap_or_else(|error| panic!("cannot remove the server's data: {error}"));
                builder::create_data_path(folder);
            }
        }
        let start = Instant::now();
        loop {
            let mut command = self.options.command(folder, self.port, self.tls.as_ref());
            if let Some(clock) = &self.clock {
                clock.install(&mut command);
            }
            *daemon = Daemon::spawn(builder::PROGRAM, command, &folder.join("log"));
            let pid = daemon.pid();
            match daemon.wait_until_ready(|| look(self.port, &self.admin, pid)) {
                Ok(()) => return,
                // A connection of the old process may still be on its way out.
                Err(Taken) => assert!(start.elapsed() < PATIENCE, "port {} was taken by another server", self.port),
            }
        }
    }

    /// A connection with all rights, despite passwords and ACLs.
    #[track_caller]
    pub fn connect(&self) -> Connection {
        let mut daemon = self.daemon();
        // Only our process can have the port while it runs.
        if let Some(status) = daemon.ended() {
            panic!("redis-server does not run, it ended with {status}; it said:\n{}", daemon.tail());
        }
        drop(daemon);
        let connection = connect(self.port, &self.admin);
        connection.unwrap_or_else(|error| panic!("cannot connect to redis-server: {error}; {}", self.said()))
    }

    /// Runs a command with every right and returns its answer, which may be [`Reply::Error`].
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> Reply {
        let reply = self.connect().command(words);
        reply.unwrap_or_else(|error| panic!("no answer to {words:?}: {error}; {}", self.said()))
    }

    /// The number of times that a command (in lower case, such as `evalsha`) was processed since the server started,
    /// including calls by scripts. It counts all clients; of this module's own calls only `info`, `auth` and what a
    /// test sends.
    #[track_caller]
    pub fn commands_processed(&self, name: &str) -> u64 {
        let info = self.command(&["INFO", "commandstats"]).text();
        let line = info_field(&info, &format!("cmdstat_{name}"));
        let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next()?.parse().ok());
        calls.unwrap_or_default()
    }

    /// A value of `INFO`, such as `master_link_status`.
    #[track_caller]
    pub fn info(&self, field: &str) -> Option<String> {
        info_field(&self.command(&["INFO"]).text(), field).map(str::to_owned)
    }

    /// Makes a replica a primary of its own. When it is started again, it is a replica again.
    #[track_caller]
    pub fn promote(&self) {
        let reply = self.command(&["REPLICAOF", "NO", "ONE"]);
        assert!(!reply.is_error(), "promote: {reply:?}");
    }

    /// Waits until `replicas` replicas are connected and have everything that was written here before the call.
    #[track_caller]
    pub fn wait_replicas_in_sync(&self, replicas: usize) {
        let mut connection = self.connect();
        wait_until("replicas in sync", || {
            // WAIT is about what this connection has done, and counts everything before its last command as such.
            let asked = connection.command(&["PING"]);
            let count = asked.and_then(|_| connection.command(&["WAIT", &replicas.to_string(), "100"]));
            let count = count.unwrap_or_else(|error| panic!("no answer to WAIT: {error}; {}", self.said()));
            usize::try_from(count.integer()).is_ok_and(|count| count >= replicas)
        });
    }

    /// Sets the wall clock of this server, and of nothing else, to the true time plus `offset_ms`. Its monotonic clock
    /// goes on. For a server built with [`Builder::with_clock_offset`].
    #[track_caller]
    pub fn set_clock_ms(&self, offset_ms: i64) {
        let clock = self.clock.as_ref();
        clock.unwrap_or_else(|| panic!("this server was built without `with_clock_offset()`")).set(offset_ms);
    }

    /// The credentials with which a server in front of this one logs in.
    pub(crate) fn credentials(&self) -> Credentials {
        self.admin.clone()
    }

    #[track_caller]
    fn tls(&self) -> &tls::Tls {
        self.tls.as_ref().unwrap_or_else(|| panic!("this server was built without `tls()`"))
    }

    fn said(&self) -> String {
        format!("redis-server said:\n{}", self.daemon().tail())
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A connection with the rights of `admin`.
pub(crate) fn connect(port: u16, admin: &Credentials) -> io::Result<Connection> {
    let mut connection = Connection::open(at(port))?;
    let auth = match (&admin.user, &admin.password) {
        (Some(user), Some(password)) => connection.command(&["AUTH", user, password])?,
        (None, Some(password)) => connection.command(&["AUTH", password])?,
        (_, None) => return Ok(connection),
    };
    match auth {
        Reply::Error(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        Reply::Status(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil | Reply::Array(_) => Ok(connection),
    }
}

fn look(port: u16, admin: &Credentials, pid: u32) -> Sight {
    let info = match connect(port, admin).and_then(|mut connection| connection.command(&["INFO"])) {
        Ok(Reply::Bulk(info)) => String::from_utf8_lossy(&info).into_owned(),
        // Ours knows the password and answers INFO with text.
        Ok(Reply::Error(_) | Reply::Status(_) | Reply::Integer(_) | Reply::Nil | Reply::Array(_)) => {
            return Sight::SomebodyElse;
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData) => {
            return Sight::SomebodyElse;
        }
        Err(_) => return Sight::NotYet,
    };
    if info_field(&info, "process_id") != Some(&pid.to_string()) {
        return Sight::SomebodyElse;
    }
    if info_field(&info, "loading") == Some("0") { Sight::Ready } else { Sight::NotYet }
}

pub(crate) fn info_field<'a>(info: &'a str, field: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_server_is_recognised_by_pid_or_answers() {
        let server = Server::start();
        let nobody = Credentials::default();
        assert_eq!(look(server.port, &nobody, server.pid()), Sight::Ready);
        assert_eq!(look(server.port, &nobody, server.pid() + 1), Sight::SomebodyElse);
        let wrong = Credentials { user: None, password: Some("of another server".to_owned()) };
        assert_eq!(look(server.port, &wrong, server.pid()), Sight::SomebodyElse);
        server.kill();
        assert_eq!(look(server.port, &nobody, server.pid()), Sight::NotYet);
    }
}
