//! Real etcd servers, one or several that form a cluster.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tempfile::TempDir;

use crate::http::{self, Response};
use crate::process::{Daemon, Program, Sight, Taken, controls};
use crate::proxy::{Proxy, Request};
use crate::redis::tls::Tls;
use crate::{PATIENCE, ports, wait_until};

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
    /// The way of the other members to this one, where it can be cut.
    peers: Option<Proxy>,
    folder: TempDir,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    port: u16,
    peer_port: u16,
    /// The address at which the others find it.
    peer_url: String,
    /// The peers of all members.
    cluster: String,
    settings: Vec<String>,
}

/// The way of the members of a cluster to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peers {
    Direct,
    Proxied,
}

controls!(Server);

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

    /// An etcd with one member, which takes clients with TLS and a certificate too, and what such a client needs.
    #[track_caller]
    pub fn with_tls() -> (Self, TlsClient) {
        let folder = crate::process::folder();
        let (tls, port) = (Tls::new(folder.path()), ports::free());
        let text = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let server = Self::with(&[
            &format!("--listen-client-urls=https://127.0.0.1:{port}"),
            &text("cert-file", &tls.certificate),
            &text("key-file", &tls.key),
            &text("trusted-ca-file", &tls.authority),
            "--client-cert-auth",
        ]);
        let client = TlsClient {
            url: format!("etcds://127.0.0.1:{port}"),
            authority: tls.authority,
            certificate: tls.certificate,
            key: tls.key,
            folder,
        };
        (server, client)
    }

    /// An etcd with several members.
    #[track_caller]
    pub fn cluster<const N: usize>(settings: &[&str]) -> [Self; N] {
        Self::begin(settings, Peers::Direct)
    }

    /// The same, whose members can be [isolated](Self::isolate).
    #[track_caller]
    pub fn cluster_to_cut<const N: usize>() -> [Self; N] {
        Self::begin(&[], Peers::Proxied)
    }

    #[track_caller]
    fn begin<const N: usize>(settings: &[&str], way: Peers) -> [Self; N] {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        for _ in 0..10 {
            let members = [(); N].map(|()| {
                let (port, peer_port) = (ports::free(), ports::free());
                let peers = (way == Peers::Proxied).then(|| Proxy::to((Ipv4Addr::LOCALHOST, peer_port).into()));
                let shown = peers.as_ref().map_or(peer_port, Proxy::port);
                let (name, peer_url) = (format!("m{port}"), format!("http://127.0.0.1:{shown}"));
                let settings = settings.clone();
                (Member { name, port, peer_port, peer_url, cluster: String::new(), settings }, peers)
            });
            let all = members.iter().map(|(member, _)| format!("{}={}", member.name, member.peer_url));
            let cluster = all.collect::<Vec<_>>().join(",");
            let servers = members.map(|(member, peers)| {
                let (member, folder) = (Member { cluster: cluster.clone(), ..member }, crate::process::folder());
                Self { daemon: Mutex::new(member.spawn(&folder)), member, peers, folder }
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
        let response = ask(self.address(), &format!("POST {path} HTTP/1.0\r\nContent-Length: {}", body.len()), body);
        response.unwrap_or_else(|error| panic!("etcd did not answer {path}: {error}\n{}", self.daemon().tail()))
    }

    /// Runs `etcdctl` against this server.
    #[track_caller]
    pub fn etcdctl(&self, args: &[&str]) -> String {
        const CTL: Program = Program { name: "etcdctl", debian_package: "etcd-client" };
        let mut command = CTL.command();
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", self.address())).args(args);
        let output = command.output().unwrap_or_else(|error| panic!("{}", CTL.complaint(&error)));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "etcdctl {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The value of a key; empty where there is none.
    #[track_caller]
    pub fn get(&self, key: &str) -> String {
        self.etcdctl(&["get", "--print-value-only", key]).trim_end().to_owned()
    }

    /// The keys that are watched.
    #[track_caller]
    pub fn watchers(&self) -> u64 {
        self.metric("etcd_debugging_mvcc_watcher_total")
    }

    /// The transactions that were carried out.
    #[track_caller]
    pub fn transactions(&self) -> u64 {
        self.metric("etcd_debugging_mvcc_txn_total")
    }

    #[track_caller]
    fn metric(&self, name: &str) -> u64 {
        let text = ask(self.address(), "GET /metrics HTTP/1.0", "").map(|response| response.text());
        let text = text.unwrap_or_else(|error| panic!("etcd shows no metrics: {error}"));
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counters are small")]
        value.map_or_else(|| panic!("no {name} in {text}"), |value| value as u64)
    }

    /// Tells if it leads its cluster, as far as it knows.
    #[track_caller]
    pub fn leads(&self) -> bool {
        let (own, leader) = self.ids();
        own == leader
    }

    /// Cuts all connections between this member and the others, which go on among themselves.
    ///
    /// # Panics
    ///
    /// Where the cluster is none of [`Self::cluster_to_cut`].
    #[track_caller]
    pub fn isolate(&self, others: &[&Self]) {
        // A member names itself in each request to another.
        let from_here = format!("X-Server-From: {:x}", self.ids().0);
        self.way().refuse();
        self.way().cut_all();
        for other in others {
            let _ = other.way().reset_before_forwarding(Request::containing(&from_here).always());
            other.way().cut_all();
        }
    }

    /// Ends [`Self::isolate`].
    #[track_caller]
    pub fn rejoin(&self, others: &[&Self]) {
        others.iter().chain([&self]).for_each(|member| member.way().pass());
        wait_until("the member has found its leader again", || self.ids().1 != 0);
    }

    fn way(&self) -> &Proxy {
        self.peers.as_ref().unwrap_or_else(|| panic!("the peers of {} cannot be cut", self.member.name))
    }

    /// The ids of this member and of its leader; 0 where it knows none.
    #[track_caller]
    fn ids(&self) -> (u64, u64) {
        let text = self.post("/v3/maintenance/status", "{}").text();
        let number = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\":\""))?;
            rest.split('"').next()?.parse().ok()
        };
        (number("member_id").unwrap_or_else(|| panic!("no id: {text}")), number("leader").unwrap_or(0))
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

    /// A snapshot of the data.
    #[track_caller]
    pub fn backup(&self) -> Backup {
        let folder = crate::process::folder();
        let file = folder.path().join("backup.db");
        self.etcdctl(&["snapshot", "save", &file.display().to_string()]);
        Backup { file, _folder: folder }
    }

    /// Replaces the data of this only member by a snapshot, and starts it again.
    #[track_caller]
    pub fn restore(&self, backup: &Backup, cluster_token: &str) {
        self.kill();
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        let Member { name, peer_url, cluster, .. } = &self.member;
        self.etcdctl(&[
            "snapshot",
            "restore",
            &backup.file.display().to_string(),
            &format!("--data-dir={}", data.display()),
            &format!("--name={name}"),
            &format!("--initial-cluster={cluster}"),
            &format!("--initial-advertise-peer-urls={peer_url}"),
            &format!("--initial-cluster-token={cluster_token}"),
        ]);
        self.restart();
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request of HTTP 1.0, whose answers come in one piece, and end with the connection.
fn ask(address: SocketAddr, head: &str, body: &str) -> io::Result<Response> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    let text = io::read_to_string(connection)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
}

/// A snapshot of an etcd.
#[derive(Debug)]
pub struct Backup {
    file: PathBuf,
    _folder: TempDir,
}

impl Backup {
    /// The token with which all clusters start.
    pub const SAME_CLUSTER: &str = "etcd-cluster";
}

/// The url, the authority and the certificate of a client with TLS.
#[derive(Debug)]
pub struct TlsClient {
    /// The url, without parameters.
    pub url: String,
    /// The authority of the server's certificate.
    pub authority: PathBuf,
    /// A certificate that the server takes.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    folder: TempDir,
}

impl TlsClient {
    /// Replaces all of the files. The server has the new ones after a [restart](Server::restart).
    #[track_caller]
    pub fn rotate(&self) {
        let _ = Tls::new(self.folder.path());
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
        const LISTEN: &str = "--listen-client-urls=";
        let (listen, settings): (Vec<&String>, Vec<_>) =
            self.settings.iter().partition(|setting| setting.starts_with(LISTEN));
        let more = listen.iter().filter_map(|setting| setting.strip_prefix(LISTEN));
        let listen = std::iter::once(client.as_str()).chain(more).collect::<Vec<_>>().join(",");
        command.arg(format!("{LISTEN}{listen}")).args(["--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &self.peer_url]);
        command.args(["--initial-cluster", &self.cluster]).args(settings).current_dir(folder.path());
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
