//! Real Redis Sentinels, and the servers that they watch.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::{Builder, Credentials, Server, builder, connect, info_field};
use crate::process::{Daemon, Sight, write_file};
use crate::resp::Reply;
use crate::{ports, wait_until};

/// The Sentinels' name of their master.
const NAME: &str = "main";

/// A master, a replica, and Sentinels that make the replica the master when the master is gone for half a second.
///
/// # Panics
///
/// Every method panics where it cannot do what it says.
#[derive(Debug)]
pub struct Watched {
    /// Stopped first, so that they do not see the others go.
    sentinels: Vec<Sentinel>,
    servers: [Server; 2],
    password: Option<String>,
}

#[derive(Debug)]
struct Sentinel {
    daemon: Mutex<Daemon>,
    port: u16,
    _folder: TempDir,
}

impl Watched {
    /// With three Sentinels.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(None, |builder| builder)
    }

    /// With a password that the Sentinels want from those who ask them, and options for both servers.
    #[track_caller]
    pub fn start_with(password: Option<&str>, options: impl Fn(Builder) -> Builder) -> Self {
        let master = options(Server::builder()).start();
        let replica = options(Server::builder().replica_of(&master)).start();
        master.wait_replicas_in_sync(1);
        let sentinels = (0..3).map(|_| Sentinel::start(&master, password)).collect();
        let watched = Self { sentinels, servers: [master, replica], password: password.map(str::to_owned) };
        wait_until("the Sentinels know each other and the replica", || {
            let count =
                |info: &[(String, String)], name: &str| info.iter().any(|pair| *pair == (name.into(), "2".into()));
            watched.sentinels.iter().all(|sentinel| {
                let info = watched.of_master(sentinel);
                count(&info, "num-other-sentinels") && info.contains(&("num-slaves".into(), "1".into()))
            })
        });
        watched
    }

    /// The server that was the master first, and the one that was its replica.
    pub fn servers(&self) -> &[Server; 2] {
        &self.servers
    }

    /// The url for clients, naming every Sentinel: `redis+sentinel://127.0.0.1:port,.../main`.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}{}/{NAME}", self.servers[0].options.userinfo(), hosts.join(","))
    }

    /// The ports of the Sentinels.
    pub fn ports(&self) -> Vec<u16> {
        self.sentinels.iter().map(|sentinel| sentinel.port).collect()
    }

    /// Ends one of the Sentinels.
    pub fn kill_sentinel(&self, place: usize) {
        self.sentinels[place].daemon.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// The port of the master as each Sentinel that runs knows it; at least one does.
    #[track_caller]
    pub fn master_ports(&self) -> Vec<u16> {
        let port = |sentinel| {
            let reply = self.command(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
            let port = reply.array()[1].integer();
            u16::try_from(port).unwrap_or_else(|_| panic!("no port: {port}"))
        };
        self.running().into_iter().map(port).collect()
    }

    /// Has the replica promoted, while the master runs, and waits until every Sentinel that runs knows.
    #[track_caller]
    pub fn fail_over(&self) {
        let before = self.master_ports();
        let reply = self.ask(&["SENTINEL", "FAILOVER", NAME]);
        assert!(!reply.is_error(), "{reply:?}");
        wait_until("another master", || self.master_ports().iter().all(|port| !before.contains(port)));
    }

    /// Waits until all Sentinels that run know `server` as the master. Only then are connections to it safe: those
    /// before are ended by its promotion.
    #[track_caller]
    pub fn wait_until_master(&self, server: &Server) {
        let all = || self.master_ports().iter().all(|port| *port == server.port());
        wait_until("the Sentinels agree on the new master", all);
    }

    /// A command to a Sentinel that runs.
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> Reply {
        self.command(self.running()[0], words)
    }

    /// The Sentinels that run; at least one does.
    #[track_caller]
    fn running(&self) -> Vec<&Sentinel> {
        let runs =
            |sentinel: &&Sentinel| sentinel.daemon.lock().unwrap_or_else(PoisonError::into_inner).ended().is_none();
        let running: Vec<_> = self.sentinels.iter().filter(runs).collect();
        assert!(!running.is_empty(), "no Sentinel runs");
        running
    }

    fn command(&self, sentinel: &Sentinel, words: &[&str]) -> Reply {
        let admin = Credentials { user: None, password: self.password.clone() };
        let reply = connect(sentinel.port, &admin).and_then(|mut connection| connection.command(words));
        reply.unwrap_or_else(|error| panic!("no answer of a Sentinel to {words:?}: {error}"))
    }

    fn of_master(&self, sentinel: &Sentinel) -> Vec<(String, String)> {
        let reply = self.command(sentinel, &["SENTINEL", "MASTER", NAME]);
        reply.array().chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text())).collect()
    }
}

impl Sentinel {
    #[track_caller]
    fn start(master: &Server, password: Option<&str>) -> Self {
        let admin = Credentials { user: None, password: password.map(str::to_owned) };
        for _ in 0..10 {
            let (folder, port) = (crate::process::folder(), ports::free());
            let settings = settings(folder.path(), port, master, password);
            let mut command = builder::PROGRAM.command();
            command.arg(write_file(folder.path(), "sentinel.conf", settings)).arg("--sentinel");
            let mut daemon = Daemon::spawn(builder::PROGRAM, command, &folder.path().join("log"));
            let pid = daemon.pid();
            if daemon.wait_until_ready(|| look(port, &admin, pid)).is_ok() {
                return Self { daemon: Mutex::new(daemon), port, _folder: folder };
            }
        }
        panic!("every port that was free a moment ago was taken when the Sentinel came to it");
    }
}

fn settings(folder: &Path, port: u16, master: &Server, password: Option<&str>) -> String {
    let mut lines = vec![
        format!("port {port}"),
        "bind 127.0.0.1".to_owned(),
        format!("dir {}", folder.display()),
        format!("sentinel monitor {NAME} 127.0.0.1 {} 2", master.port()),
        format!("sentinel down-after-milliseconds {NAME} 500"),
        format!("sentinel failover-timeout {NAME} 3000"),
    ];
    if let Some(user) = &master.admin.user {
        lines.push(format!("sentinel auth-user {NAME} {user}"));
    }
    if let Some(password) = &master.admin.password {
        lines.push(format!("sentinel auth-pass {NAME} {password}"));
    }
    if let Some(password) = password {
        lines.push(format!("requirepass {password}"));
        lines.push(format!("sentinel sentinel-pass {password}"));
    }
    lines.join("\n") + "\n"
}

fn look(port: u16, admin: &Credentials, pid: u32) -> Sight {
    match connect(port, admin).and_then(|mut connection| connection.command(&["INFO", "server"])) {
        Ok(Reply::Bulk(info)) => {
            let info = String::from_utf8_lossy(&info).into_owned();
            if info_field(&info, "process_id") == Some(&pid.to_string()) { Sight::Ready } else { Sight::SomebodyElse }
        }
        Ok(Reply::Error(_) | Reply::Status(_) | Reply::Integer(_) | Reply::Nil | Reply::Array(_)) => {
            Sight::SomebodyElse
        }
        Err(_) => Sight::NotYet,
    }
}
