//! The cost of leasehold on etcd, compared with two bare transactions on the same HTTP client and with etcd's own locks.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold_bench::child;
use leasehold_bench::peers::turns::{self, Held, Peer, Plan, TTL, held};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::Proxy;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

const BARE: &str = "two bare txns";
const THEIRS: &str = "etcd's own lock";
const OURS: &str = "leasehold";

/// The JSON of a lock in base64, as long as one of leasehold's.
const TAKEN: &str = "eyJjb3VudGVyIjoxNzY0MDk2MDAwMDAwLCJsZWFzZSI6eyJub25jZSI6IjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZm\
                     Iiwic2VxIjoxLCJyZWxlYXNlZCI6ZmFsc2UsInR0bF9ucyI6MzAwMDAwMDAwMDAsInNpbmNlX21zIjoxNzY0MDk2MDAwMDAwLCJv\
                     d25lciI6ImJhcmUiLCJkYXRhIjpudWxsfX0=";

pub(crate) fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => turns::work::<Way>(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-etcd", result)
}

fn measure() -> Result {
    let plan = Plan::chosen()?;
    let server = Server::start();
    let version: Value = serde_json::from_str(&server.post("/v3/maintenance/status", "{}").text())?;
    let version = version["version"].as_str().unwrap_or("unknown");
    println!(
        "{}",
        surroundings(&format!("etcd {version} with one member on 127.0.0.1, which does not wait for its disk"))
    );
    leasehold_bench::records::version("etcd", version);
    let at = |names: &[&'static str]| names.iter().map(|name| (*name, server.url())).collect::<Vec<_>>();
    turns::one_client::<Way>("one client, async", &at(&[BARE, OURS, THEIRS]), &plan)?;
    turns::many_tasks::<Way>(&at(&[BARE, OURS, THEIRS]), &plan)?;
    turns::contended(&at(&[THEIRS, OURS]), &plan)?;
    let proxy = Proxy::to(server.address());
    turns::holding("requests", &format!("etcd://{}", proxy.address()), &proxy, &plan)
}

/// A way to lock on etcd.
#[derive(Clone)]
enum Way {
    Leasehold(leasehold::Client),
    /// Transactions that compare the revision of a key, which its last writer knows.
    Bare(Gateway, Arc<Mutex<HashMap<String, String>>>),
    /// etcd's lock service, with one lease of etcd for all locks.
    Theirs(Gateway, String),
}

/// The JSON gateway, by the client that leasehold uses.
#[derive(Clone)]
struct Gateway {
    client: reqwest::Client,
    url: String,
}

impl Gateway {
    fn open(url: &str) -> Result<Self> {
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
        Ok(Self { client, url: url.replace("etcd://", "http://") })
    }

    async fn post(&self, path: &str, body: &Value) -> std::result::Result<Value, String> {
        let asked = self.client.post(format!("{}{path}", self.url)).body(body.to_string());
        let answer = asked.send().await.map_err(|error| error.to_string())?;
        let answer = answer.bytes().await.map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        if answer["error"].is_null() { Ok(answer) } else { Err(answer.to_string()) }
    }

    /// Writes a key that is still at this revision, and returns its next one.
    async fn replace(&self, key: &str, revision: &str) -> std::result::Result<String, String> {
        let key = base64(key);
        let compare = json!({ "result": "EQUAL", "target": "MOD", "key": key, "mod_revision": revision });
        let put = json!({ "requestPut": { "key": key, "value": TAKEN } });
        let answer = self.post("/v3/kv/txn", &json!({ "compare": [compare], "success": [put] })).await?;
        match (answer["succeeded"].as_bool(), answer["header"]["revision"].as_str()) {
            (Some(true), Some(revision)) => Ok(revision.to_owned()),
            _ => Err("somebody else was there".to_owned()),
        }
    }
}

impl Peer for Way {
    async fn open(name: &str, url: &str) -> Result<Self> {
        Ok(match name {
            OURS => Self::Leasehold(leasehold::Client::connect(url).await?),
            BARE => Self::Bare(Gateway::open(url)?, Arc::default()),
            THEIRS => {
                let gateway = Gateway::open(url)?;
                let lease = gateway.post("/v3/lease/grant", &json!({ "TTL": "3600" })).await?;
                Self::Theirs(gateway, lease["ID"].as_str().ok_or("no lease")?.to_owned())
            }
            other => return Err(format!("no such peer: {other}").into()),
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
            Self::Bare(gateway, revisions) => {
                let key = format!("bare/{key}");
                let known = revisions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
                let taken = gateway.replace(&key, known.as_deref().unwrap_or("0")).await?;
                let times = held(hold).await;
                let freed = gateway.replace(&key, &taken).await?;
                revisions.lock().unwrap_or_else(PoisonError::into_inner).insert(key, freed);
                Ok(times)
            }
            Self::Theirs(gateway, lease) => {
                let lock = json!({ "name": base64(&format!("theirs/{key}")), "lease": lease });
                let lock = gateway.post("/v3/lock/lock", &lock).await?;
                let times = held(hold).await;
                gateway.post("/v3/lock/unlock", &json!({ "key": lock["key"] })).await?;
                Ok(times)
            }
        }
    }
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}
