//! The cost of `leasehold serve` over HTTP, compared with the client in the same process, both on one Redis.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use leasehold_bench::peers::turns::{self, Held, Peer, Plan, TTL, held};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_servers::redis::Server;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

const OURS: &str = "leasehold";
const DAEMON: &str = "leasehold serve";

pub(crate) fn main() -> ExitCode {
    leasehold_bench::exit_code("bench-serve", measure())
}

fn measure() -> Result {
    let plan = Plan::chosen()?;
    let server = Server::start();
    let daemon = Daemon::start(&server.url())?;
    println!("{}", surroundings("Redis and the daemon on 127.0.0.1, HTTP/1.1 on connections that are kept"));
    let places = [(OURS, server.url()), (DAEMON, daemon.url.clone())];
    turns::one_client::<Way>("one client, async", &places, &plan)?;
    turns::many_tasks::<Way>(&places, &plan)
}

/// A daemon that is stopped when it is dropped.
struct Daemon {
    child: Child,
    url: String,
}

impl Daemon {
    fn start(store: &str) -> Result<Self> {
        // `cargo xtask bench` builds both.
        let program: PathBuf = std::env::current_exe()?.with_file_name("leasehold");
        let mut command = Command::new(&program);
        command.args(["serve", "--store", store, "--listen", "127.0.0.1:0"]);
        let mut child =
            command.stdout(Stdio::piped()).spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let url = line.split([' ', ',']).find(|word| word.starts_with("http://")).map(str::to_owned);
        let mut daemon = Self { child, url: String::new() };
        daemon.url = url.ok_or_else(|| format!("the daemon says {line:?}"))?;
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone)]
enum Way {
    Leasehold(leasehold::Client),
    Daemon(reqwest::Client, String),
}

impl Peer for Way {
    async fn open(name: &str, url: &str) -> Result<Self> {
        Ok(match name {
            OURS => Self::Leasehold(leasehold::Client::connect(url).await?),
            _ => {
                // Without effect where there is one.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
                let client = reqwest::Client::builder()
                    .tls_backend_preconfigured(tls)
                    .tcp_nodelay(true)
                    .http1_only()
                    .no_proxy()
                    .retry(reqwest::retry::never())
                    .build()?;
                Self::Daemon(client, url.to_owned())
            }
        })
    }

    async fn lock(&mut self, key: &str, hold: Duration) -> Held {
        match self {
            Self::Leasehold(client) => {
                let lease = client.lock(key).ttl(TTL).await.map_err(|error| error.to_string())?;
                let times = held(hold).await;
                lease.release().await.map_err(|error| error.to_string())?;
                Ok(times)
            }
            Self::Daemon(client, url) => {
                let body = json!({ "resource": key, "ttl_ms": TTL.as_millis() as u64 });
                let lease = post(client, &format!("{url}/v1/acquire"), &body).await?;
                let id = lease["id"].as_str().ok_or("no id")?;
                let times = held(hold).await;
                post(client, &format!("{url}/v1/leases/{id}/release"), &json!({})).await?;
                Ok(times)
            }
        }
    }
}

async fn post(client: &reqwest::Client, url: &str, body: &Value) -> std::result::Result<Value, String> {
    let asked = client.post(url).header("content-type", "application/json").body(body.to_string());
    let answer = asked.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let answer = answer.bytes().await.map_err(|error| error.to_string())?;
    match status.is_success() {
        true => serde_json::from_slice(&answer).or(Ok(Value::Null)),
        false => Err(format!("{status}: {}", String::from_utf8_lossy(&answer))),
    }
}
