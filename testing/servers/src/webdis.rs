//! Real Webdis servers: Redis over HTTP, as Debian ships it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{self, Response};
use crate::process::{Daemon, Program, Sight, Taken, controls, write_file};
use crate::redis::{self, Credentials};
use crate::{PATIENCE, ports};

const PROGRAM: Program = Program { name: "webdis", debian_package: "webdis" };

/// A real Webdis in front of a Redis server. Dropped, it is stopped.
///
/// # Panics
///
/// Every method panics where it cannot do what it says, and shows what the server wrote last.
#[derive(Debug)]
pub struct Server {
    daemon: Mutex<Daemon>,
    port: u16,
    /// The run id of its Redis, which distinguishes it from any other.
    run_id: String,
    folder: TempDir,
}

controls!(Server);

impl Server {
    /// Starts Webdis in front of `redis`, with two threads. A password is known to it; users of an ACL file are not.
    #[track_caller]
    pub fn start(redis: &redis::Server) -> Self {
        Self::start_at(redis, redis.port())
    }

    /// Starts Webdis in front of `redis`, which it reaches through a [`Proxy`](crate::proxy::Proxy) on `redis_port`.
    #[track_caller]
    pub fn start_at(redis: &redis::Server, redis_port: u16) -> Self {
        Self::launch(redis.info("run_id"), redis_port, &redis.credentials())
    }

    /// Starts Webdis in front of the Redis on a port, which another process has started without passwords.
    #[track_caller]
    pub fn in_front_of(redis_port: u16) -> Self {
        let nobody = Credentials::default();
        let info = redis::connect(redis_port, &nobody).and_then(|mut redis| redis.command(&["INFO"]));
        let info = info.unwrap_or_else(|error| panic!("no Redis on port {redis_port}: {error}")).text();
        Self::launch(redis::info_field(&info, "run_id").map(str::to_owned), redis_port, &nobody)
    }

    #[track_caller]
    fn launch(run_id: Option<String>, redis_port: u16, redis: &Credentials) -> Self {
        let folder = crate::process::folder();
        let run_id = run_id.unwrap_or_else(|| panic!("the Redis server has no run_id"));
        for _ in 0..10 {
            let port = ports::free();
            let config = config(port, redis_port, redis, &folder.path().join("log"));
            write_file(folder.path(), "webdis.json", config.to_string());
            let mut daemon = spawn(folder.path());
            if daemon.wait_until_ready(|| look(port, &run_id)).is_ok() {
                return Self { daemon: Mutex::new(daemon), port, run_id, folder };
            }
        }
        panic!("every port that was free a moment ago was taken when webdis came to it");
    }

    /// The port on 127.0.0.1. It stays the same when the server is started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The url for HTTP clients: `http://127.0.0.1:port/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address())
    }

    /// Starts the server again on the same port, after ending it at once if it still runs.
    #[track_caller]
    pub fn restart(&self) {
        let mut daemon = self.daemon();
        daemon.kill();
        let start = Instant::now();
        loop {
            *daemon = spawn(self.folder.path());
            match daemon.wait_until_ready(|| look(self.port, &self.run_id)) {
                Ok(()) => return,
                // A connection of the old process may still be on its way out.
                Err(Taken) => assert!(start.elapsed() < PATIENCE, "port {} was taken by another server", self.port),
            }
        }
    }

    /// Posts a command as Webdis wants it, percent-encoded with `/` between words: `SET/key/value`. Errors of Redis
    /// come with status 200.
    #[track_caller]
    pub fn command(&self, words: &str) -> Response {
        let response = http::request(self.address(), "POST", "/", &[], words);
        response.unwrap_or_else(|error| {
            panic!("webdis did not answer {words:?}: {error}; it said:\n{}", self.daemon().tail())
        })
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[track_caller]
fn config(port: u16, redis_port: u16, redis: &Credentials, log: &Path) -> Value {
    assert!(redis.user.is_none(), "Webdis 0.1.9 knows passwords and no users: give its Redis no ACL file");
    json!({
        "redis_host": "127.0.0.1",
        "redis_port": redis_port,
        "redis_auth": redis.password,
        "http_host": "127.0.0.1",
        "http_port": port,
        "threads": 2,
        "daemonize": false,
        "database": 0,
        "verbosity": 3,
        "logfile": log.display().to_string(),
    })
}

#[track_caller]
fn spawn(folder: &Path) -> Daemon {
    let mut command: Command = PROGRAM.command();
    command.arg(folder.join("webdis.json")).current_dir(folder);
    Daemon::spawn(PROGRAM, command, &folder.join("log"))
}

/// Another Webdis on the port has another Redis behind it: within this process no port is given twice.
fn look(port: u16, run_id: &str) -> Sight {
    let Ok(response) = http::request((Ipv4Addr::LOCALHOST, port).into(), "POST", "/", &[], "INFO") else {
        return Sight::NotYet;
    };
    match response.status {
        200 if response.text().contains(run_id) => Sight::Ready,
        // Its connections to Redis are not there yet, or Redis still loads.
        503 => Sight::NotYet,
        200 if response.text().contains("LOADING") => Sight::NotYet,
        _ => Sight::SomebodyElse,
    }
}
