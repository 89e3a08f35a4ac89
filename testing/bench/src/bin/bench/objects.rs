//! The cost of leasehold on the S3 of moto, compared with two bare conditional writes on the same HTTP client.
//!
//! The server is slow, and takes one request at a time: the ratio of times says how many requests are made, and that of the CPU what
//! is done for each.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold_bench::child;
use leasehold_bench::peers::turns::{self, Held, Peer, Plan, TTL, held};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_servers::objects::{Api, Server};
use leasehold_wire::objects::{Method, Request};
use leasehold_wire::sigv4::{Credentials, Signer};
use rustls::{ClientConfig, RootCertStore};

const BARE: &str = "two bare writes";
const OURS: &str = "leasehold";
const REGION: &str = "eu-west-1";
const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "hunter2";

/// The JSON of a lock, as long as one of leasehold's.
const TAKEN: &str = r#"{"counter":1764096000000,"lease":{"nonce":"00112233445566778899aabbccddeeff","seq":1,"released":false,"ttl_ns":30000000000,"since_ms":1764096000000,"owner":"bare","data":null}}"#;

pub(crate) fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => turns::work::<Way>(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-objects", result)
}

fn measure() -> Result {
    let plan = Plan::chosen()?;
    // SAFETY: nothing else runs yet.
    unsafe {
        std::env::set_var("AWS_ACCESS_KEY_ID", KEY_ID);
        std::env::set_var("AWS_SECRET_ACCESS_KEY", SECRET);
    }
    let server = Server::start(Api::S3);
    println!("{}", surroundings("S3 of moto on 127.0.0.1, in memory"));
    let at = [(BARE, format!("http://{}", server.address())), (OURS, server.url("bench"))];
    turns::one_client::<Way>("one client, async", &at, &plan)
}

/// A way to lock on S3.
#[derive(Clone)]
enum Way {
    Leasehold(leasehold::Client),
    Bare(Box<Bucket>),
}

/// Writes on condition that an object is as its last writer knows it.
#[derive(Clone)]
struct Bucket {
    client: reqwest::Client,
    endpoint: String,
    signer: Arc<Mutex<Signer>>,
    tags: Arc<Mutex<HashMap<String, String>>>,
}

impl Bucket {
    fn open(endpoint: &str) -> Result<Self> {
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
        Ok(Self {
            client,
            endpoint: endpoint.to_owned(),
            signer: Arc::new(Mutex::new(Signer::new())),
            tags: Arc::default(),
        })
    }

    async fn write(&self, key: &str) -> std::result::Result<(), String> {
        let known = self.tags.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        let condition = known.map_or(("if-none-match", "*".to_owned()), |tag| ("if-match", tag));
        let request = Request {
            method: Method::Put,
            path: format!("/locks/bare/{key}"),
            query: String::new(),
            headers: vec![condition],
            body: TAKEN.as_bytes().to_vec(),
        };
        let credentials =
            Credentials { access_key_id: KEY_ID.into(), secret_access_key: SECRET.into(), session_token: None };
        let host = self.endpoint.trim_start_matches("http://");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
        let headers = self.signer.lock().unwrap_or_else(PoisonError::into_inner).sign_object(
            &request,
            host,
            REGION,
            &credentials,
            now,
        );
        let mut asked = self.client.put(format!("{}{}", self.endpoint, request.path));
        for (name, value) in headers.iter() {
            asked = asked.header(name, value);
        }
        let answer = asked.body(request.body).send().await.map_err(|error| error.to_string())?;
        let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let status = answer.status();
        answer.bytes().await.map_err(|error| error.to_string())?;
        let tag = tag.filter(|_| status.is_success()).ok_or_else(|| format!("a bare write: {status}"))?;
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), tag);
        Ok(())
    }
}

impl Peer for Way {
    async fn open(name: &str, url: &str) -> Result<Self> {
        Ok(match name {
            OURS => Self::Leasehold(leasehold::Client::connect(url).await?),
            BARE => Self::Bare(Box::new(Bucket::open(url)?)),
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
            Self::Bare(bucket) => {
                bucket.write(key).await?;
                let times = held(hold).await;
                bucket.write(key).await?;
                Ok(times)
            }
        }
    }
}
