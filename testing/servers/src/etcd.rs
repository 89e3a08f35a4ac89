//! Real etcd servers, one or several that form a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::http::{self, Response};
use crate::process::{Daemon, Program, Sight, Taken};
use crate::{PATIENCE, ports};

const PROGRAM: Program = Program { name: "etcd", debian_package: "etcd-server" };

/// A member of a real etcd, on 127.0.0.1; it does not wait for its disk. Dropped, it is stopped and its data removed.
///
/// # Panics
///
/// Every method panics where it cannot do what it says, and shows what the server wrote last.
#[derive(Debug)]
pub struct Server {
    daemon: Mutex<Daemon>,
    member: Member,
    folder: TempDir,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    port: u16,
    peer_port: u16,
    /// The peers of all members.
    cluster: String,
    settings: Vec<String>,
}

impl Server {
    /// An etcd with one member.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same with more settings, such as `--quota-backend-bytes=1000000`.
    #[track_caller]
    pub fn with(settings: &[&str]) -> Self {
        let [server] = Self::cluster(settings);
        server
    }

    /// An etcd with several members.
    #[track_caller]
    pub fn cluster<const N: usize>(settings: &[&str]) -> [Self; N] {
        for _ in 0..10 {
            let ports = [(); N].map(|()| (ports::free(), ports::free()));
            let peers = ports.iter().map(|(port, peer)| format!("m{port}=http://127.0.0.1:{peer}"));
            let cluster = peers.collect::<Vec<_>>().join(",");
            let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
            let servers = ports.map(|(port, peer_port)| {
                let name = format!("m{port}");
                let member = Member { name, port, peer_port, cluster: cluster.clone(), settings: settings.clone() };
                let folder = crate::process::folder();
                Self { daemon: Mutex::new(member.spawn(&folder)), member, folder }
            });
            if servers.iter().all(|server| server.daemon().wait_until_ready(|| server.member.look()).is_ok()) {
                return servers;
            }
        }
        panic!("every port that was free a moment ago was taken when etcd came to it");
    }

    /// The address for clients. It stays the same when the server is started again.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.member.port).into()
    }

    /// The url for clients.
    pub fn url(&self) -> String {
        format!("etcd://{}", self.address())
    }

    /// Posts JSON to the gateway.
    #[track_caller]
    pub fn post(&self, path: &str, body: &str) -> Response {
        let response = http::request(self.address(), "POST", path, &[], body);
        response.unwrap_or_else(|error| panic!("etcd did not answer {path}: {error}\n{}", self.daemon().tail()))
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&self) {
        self.daemon().kill();
    }

    /// Stops the process with SIGSTOP. Connections stay open, and there are no answers.
    pub fn stop_process(&self) {
        self.daemon().freeze();
    }

    /// Lets a stopped process go on.
    pub fn continue_process(&self) {
        self.daemon().signal(Signal::CONT);
    }

    /// Starts the server again on the same data and ports, without waiting for its answer: it has none without a majority.
    #[track_caller]
    pub fn begin_restart(&self) {
        let mut daemon = self.daemon();
        daemon.kill();
        *daemon = self.member.spawn(&self.folder);
    }

    /// Starts the server again, and waits until it answers.
    #[track_caller]
    pub fn restart(&self) {
        let start = Instant::now();
        loop {
            self.begin_restart();
            match self.daemon().wait_until_ready(|| self.member.look()) {
                Ok(()) => return,
                // A connection of the old process may still be on its way out.
                Err(Taken) => assert!(start.elapsed() < PATIENCE, "the port of {} was taken", self.member.name),
            }
        }
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    #[track_caller]
    fn spawn(&self, folder: &TempDir) -> Daemon {
        let data: PathBuf = folder.path().join("data");
        let (client, peer) =
            (format!("http://127.0.0.1:{}", self.port), format!("http://127.0.0.1:{}", self.peer_port));
        let mut command: Command = PROGRAM.command();
        command.arg("--data-dir").arg(data).arg("--unsafe-no-fsync").args(["--logger", "zap", "--name", &self.name]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &self.cluster]).args(&self.settings).current_dir(folder.path());
        Daemon::spawn(PROGRAM, command, &folder.path().join("log"))
    }

    fn look(&self) -> Sight {
        const READ: &str = r#"{"compare": [], "success": []}"#;
        match http::request((Ipv4Addr::LOCALHOST, self.port).into(), "POST", "/v3/kv/txn", &[], READ) {
            Ok(response) if response.status == 200 => Sight::Ready,
            // Without a leader, or with users.
            Ok(response) if response.text().contains("etcdserver") => match response.text().contains("user name") {
                true => Sight::Ready,
                false => Sight::NotYet,
            },
            Ok(response) if response.status >= 500 => Sight::NotYet,
            Ok(_) => Sight::SomebodyElse,
            Err(_) => Sight::NotYet,
        }
    }
}
