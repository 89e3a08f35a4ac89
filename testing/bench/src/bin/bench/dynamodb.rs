//! The cost of leasehold on DynamoDB: compared with two bare conditional writes in the same run, in requests, and in
//! units of capacity.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold::blocking::Client;
use leasehold::table::{self, NewTable};
use leasehold_bench::args::Args;
use leasehold_bench::figures::{median, table as text_table};
use leasehold_bench::peers::cost::{Meter, us_each};
use leasehold_bench::peers::samples::{self, Samples};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_bench::records::Case;
use leasehold_servers::answers::{self, Reply};
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION, Server, table_name};
use leasehold_servers::http;
use leasehold_wire::dynamodb::{Request, Target};
use leasehold_wire::sigv4::{Credentials, Signer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::runtime::Builder;

const SECRET: &str = "hunter2";
/// The default of leasehold.
const TTL: Duration = Duration::from_secs(30);
const HOUR: f64 = 3600.0;

pub(crate) fn main() -> ExitCode {
    // SAFETY: no other thread runs yet.
    unsafe {
        env::set_var("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID);
        env::set_var("AWS_SECRET_ACCESS_KEY", SECRET);
    }
    leasehold_bench::exit_code("bench-dynamodb", measure())
}

/// The lengths of all parts.
struct Plan {
    rounds: usize,
    round: Duration,
    signatures: u32,
    pairs: u32,
    hold: Duration,
    wait: Duration,
    takeovers: u32,
}

impl Plan {
    const FULL: Self = Self {
        rounds: 15,
        round: Duration::from_millis(2_000),
        signatures: 200_000,
        pairs: 200,
        hold: Duration::from_secs(60),
        wait: Duration::from_secs(60),
        takeovers: 10,
    };
    const QUICK: Self = Self {
        rounds: 7,
        round: Duration::from_millis(500),
        signatures: 20_000,
        pairs: 50,
        hold: Duration::from_secs(12),
        wait: Duration::from_secs(15),
        takeovers: 3,
    };
}

fn measure() -> Result {
    let args = Args::of_benchmark(&[], &["--quick"])?;
    let plan = if args.has("--quick") { Plan::QUICK } else { Plan::FULL };
    let server = Server::start();
    println!("{}", surroundings("DynamoDB Local on 127.0.0.1, in memory"));
    let table = table_name();
    table::create(&url(&table, &server.endpoint()), &NewTable::default())?;
    beside_bare(&server, &table, &plan)?;
    signing(&plan)?;
    requests(&server, &table, &plan)
}

fn url(table: &str, endpoint: &str) -> String {
    format!("dynamodb://{table}?region={REGION}&endpoint={endpoint}")
}

fn credentials() -> Credentials {
    Credentials { access_key_id: ACCESS_KEY_ID.into(), secret_access_key: SECRET.into(), session_token: None }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// The two writes that every lock needs, signed, over one connection.
struct Bare {
    client: reqwest::Client,
    endpoint: String,
    host: String,
    table: String,
    signer: Signer,
}

impl Bare {
    fn new(server: &Server, table: &str) -> Result<Self> {
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
        let (endpoint, host) = (server.endpoint(), server.address().to_string());
        Ok(Self { client, endpoint, host, table: table.to_owned(), signer: Signer::new() })
    }

    async fn pair(&mut self, n: u64) -> Result {
        let version = format!("{:032x}:{n:010}", 7);
        self.write(&take(&self.table, &version)).await?;
        self.write(&free(&self.table, &version)).await
    }

    async fn write(&mut self, body: &Value) -> Result {
        let request = Request { target: Target::UpdateItem, body: body.to_string().into_bytes() };
        let headers = self.signer.sign(&request, &self.host, REGION, &credentials(), unix_ms());
        let mut asked = self.client.post(&self.endpoint);
        for (name, value) in headers.iter() {
            asked = asked.header(name, value);
        }
        let response = asked.body(request.body).send().await?;
        let (status, answer) = (response.status(), response.bytes().await?);
        let answer: Value = serde_json::from_slice(&answer)?;
        if status.is_success() { Ok(()) } else { Err(format!("a bare write: {status}, {answer}").into()) }
    }
}

/// An item with as many attributes as a lock, and the simplest condition that excludes others.
fn take(table: &str, version: &str) -> Value {
    json!({
        "TableName": table,
        "Key": { "key": { "S": "bare" } },
        "UpdateExpression": "SET ownerName = :on, leaseDuration = :ld, recordVersionNumber = :rvn, fencingToken = :ft \
                             REMOVE isReleased",
        "ConditionExpression": "attribute_not_exists(#pk) OR isReleased = :released",
        "ExpressionAttributeNames": { "#pk": "key" },
        "ExpressionAttributeValues": {
            ":on": { "S": "bare" }, ":ld": { "S": "30000" }, ":rvn": { "S": version },
            ":ft": { "N": unix_ms().to_string() }, ":released": { "S": "1" },
        },
    })
}

fn free(table: &str, version: &str) -> Value {
    json!({
        "TableName": table,
        "Key": { "key": { "S": "bare" } },
        "UpdateExpression": "SET isReleased = :released",
        "ConditionExpression": "recordVersionNumber = :rvn",
        "ExpressionAttributeValues": { ":rvn": { "S": version }, ":released": { "S": "1" } },
    })
}

fn beside_bare(server: &Server, table: &str, plan: &Plan) -> Result {
    println!("One client, one lock at a time: acquire and release\n");
    let mut seen = [Samples::default(), Samples::default()];
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let ours = leasehold::Client::connect(url(table, &server.endpoint()).as_str()).await?;
        let mut bare = Bare::new(server, table)?;
        let mut n = 0;
        for at in 0..=plan.rounds {
            for (who, seen) in seen.iter_mut().enumerate() {
                let (mut times, meter) = (Vec::new(), Meter::start(&[])?);
                let end = Instant::now() + plan.round;
                while Instant::now() < end {
                    let start = Instant::now();
                    if who == 0 {
                        n += 1;
                        bare.pair(n).await?;
                    } else {
                        ours.lock("one").ttl(TTL).await?.release().await?;
                    }
                    times.push(start.elapsed().as_nanos() as u64);
                }
                let cost = meter.stop()?;
                // The first round warms up, DynamoDB Local too.
                if at > 0 {
                    seen.add(times, cost);
                }
            }
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let bare = seen[0].rounds();
    let mut rows = vec![["", "p50", "p99", "CPU here", "p50 by bare"].map(str::to_owned).to_vec()];
    for (name, seen) in ["two bare writes", "leasehold"].into_iter().zip(&seen) {
        let us = [seen.us(0.5), seen.us(0.99), seen.client_us()].map(|us| format!("{us:.0} us"));
        let ratio = format!("{:.2}", seen.ratio(bare));
        rows.push(std::iter::once(name.to_owned()).chain(us).chain([ratio]).collect());
    }
    println!("{}", text_table(&rows));
    samples::tell("one client, async", &[("two bare writes", &seen[0]), ("leasehold", &seen[1])]);
    Ok(())
}

fn signing(plan: &Plan) -> Result {
    let version = format!("{:032x}:{:010}", 7, 1);
    let request = Request { target: Target::UpdateItem, body: take("locks", &version).to_string().into_bytes() };
    let (mut signer, credentials) = (Signer::new(), credentials());
    let mut sign = |n: u32| {
        let now = 1_790_000_000_000 + u64::from(n);
        black_box(signer.sign(black_box(&request), "127.0.0.1:8000", REGION, &credentials, now));
    };
    (0..1_000).for_each(&mut sign);
    let mut rounds: Vec<f64> = Vec::new();
    for _ in 0..10 {
        let meter = Meter::start(&[])?;
        (0..plan.signatures / 10).for_each(&mut sign);
        rounds.push(us_each(meter.stop()?.client, plan.signatures as usize / 10));
    }
    println!("signing one request of {} bytes: {:.1} us of processor time\n", request.body.len(), median(&rounds));
    Case("signing one request", "CPU", "us").alone(median(&rounds));
    Ok(())
}

/// The traffic to DynamoDB.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    writes: u32,
    reads: u32,
    others: u32,
    write_units: f64,
    read_units: f64,
}

/// A way to DynamoDB on which requests are counted, and DynamoDB is asked what they consume.
struct Counter {
    server: answers::Server,
    tally: Arc<Mutex<Tally>>,
}

impl Counter {
    fn before(server: &Server) -> Self {
        let (address, tally) = (server.address(), Arc::new(Mutex::new(Tally::default())));
        let ours = Arc::clone(&tally);
        let server = answers::Server::start(move |request| {
            let target = request.header("x-amz-target").unwrap_or_default().to_owned();
            let mut body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let is_of_rows = ["UpdateItem", "GetItem"].iter().any(|name| target.ends_with(name));
            if is_of_rows {
                body["ReturnConsumedCapacity"] = "TOTAL".into();
            }
            let sent = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let kept = ["x-amz-target", "content-type", "authorization", "x-amz-date"];
            let headers: Vec<(&str, &str)> =
                kept.iter().filter_map(|name| Some((*name, request.header(name)?))).collect();
            let Ok(response) = http::request(address, &request.method, &request.path, &headers, sent) else {
                return Reply::Close;
            };
            let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            // A write whose condition fails is paid for as well, which DynamoDB does not show.
            let units = answer["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(1.0);
            let mut tally = ours.lock().unwrap_or_else(PoisonError::into_inner);
            match target.rsplit('.').next() {
                Some("UpdateItem") => {
                    tally.writes += 1;
                    tally.write_units += units;
                }
                Some("GetItem") => {
                    tally.reads += 1;
                    tally.read_units += units;
                }
                Some(_) | None => tally.others += 1,
            }
            Reply::new(response.status, response.body)
        });
        Self { server, tally }
    }

    /// The traffic since the last call.
    fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn row(what: &str, tally: Tally, times: f64) -> Vec<String> {
    let each = |count: f64| format!("{:.2}", count / times);
    Case(what, "requests", "1").alone(f64::from(tally.writes + tally.reads + tally.others) / times);
    Case(what, "write units", "1").alone(tally.write_units / times);
    Case(what, "read units", "1").alone(tally.read_units / times);
    vec![
        what.to_owned(),
        each(f64::from(tally.writes + tally.reads + tally.others)),
        each(f64::from(tally.writes)),
        each(f64::from(tally.reads)),
        each(tally.write_units),
        each(tally.read_units),
    ]
}

fn requests(server: &Server, table: &str, plan: &Plan) -> Result {
    let counter = Counter::before(server);
    let client = Client::connect(url(table, &counter.server.url()))?;
    let rival = Client::connect(url(table, &server.endpoint()))?;
    let mut rows =
        vec![["each", "requests", "writes", "reads", "write units", "read units"].map(str::to_owned).to_vec()];
    println!("Requests, counted on their way, and the units that DynamoDB says they consume\n");

    client.lock("counted").ttl(TTL).acquire()?.release()?;
    let (mut acquires, mut releases) = (Tally::default(), Tally::default());
    counter.take();
    for _ in 0..plan.pairs {
        let lease = client.lock("counted").ttl(TTL).acquire()?;
        acquires.add(counter.take());
        lease.release()?;
        releases.add(counter.take());
    }
    rows.push(row("acquire, nobody competes", acquires, f64::from(plan.pairs)));
    rows.push(row("release", releases, f64::from(plan.pairs)));

    // Heartbeats come so and so often in a ttl, however long it is.
    let ttl = Duration::from_millis(1_500);
    let lease = client.lock("held").ttl(ttl).acquire()?;
    counter.take();
    std::thread::sleep(plan.hold);
    let renewals = counter.take();
    lease.release()?;
    rows.push(row("heartbeat", renewals, f64::from(renewals.writes)));
    let beats = f64::from(renewals.writes) / (plan.hold.as_secs_f64() / ttl.as_secs_f64());

    let held = rival.lock("contended").ttl(TTL).acquire()?;
    counter.take();
    let waited = client.lock("contended").wait(plan.wait).acquire();
    let polls = counter.take();
    held.release()?;
    if waited.is_ok() {
        return Err("two hold one lock".into());
    }
    rows.push(row(
        "poll, after one write at first",
        Tally { writes: polls.writes - 1, write_units: polls.write_units - 1.0, ..polls },
        f64::from(polls.reads),
    ));

    let (ttl, mut takeovers, mut took) = (Duration::from_millis(2_000), Tally::default(), Vec::new());
    for n in 0..plan.takeovers {
        let name = format!("takeover/{n}");
        let lost = rival.lock(&name).ttl(ttl).no_renewal().acquire()?;
        counter.take();
        let start = Instant::now();
        let lease = client.lock(&name).acquire()?;
        took.push(start.elapsed().as_secs_f64());
        takeovers.add(counter.take());
        lease.release()?;
        drop(lost);
    }
    rows.push(row("takeover from a dead holder, ttl 2 s", takeovers, f64::from(plan.takeovers)));
    println!("{}", text_table(&rows));

    let second = f64::from(polls.reads) / plan.wait.as_secs_f64();
    Case("takeover from a dead holder, ttl 2 s", "time", "s").alone(median(&took));
    println!("takeovers took {:.2} s (median), from the first look", median(&took));
    let hour = beats * HOUR / TTL.as_secs_f64();
    println!(
        "\nOne lock held for an hour at the default ttl of {} s, rows below 1 KB:\n  \
         {beats:.2} heartbeats in a ttl, measured; {beats:.2} * {HOUR} s / {} s = {hour:.0} heartbeats\n  \
         1 acquire + {hour:.0} heartbeats + 1 release = {:.0} write units, 0 read units\n  \
         a client that waits meanwhile: 1 write unit, then {second:.2} polls in a second, measured = {:.0} read units",
        TTL.as_secs(),
        TTL.as_secs(),
        hour + 2.0,
        second * HOUR
    );
    Ok(())
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.reads += other.reads;
        self.others += other.others;
        self.write_units += other.write_units;
        self.read_units += other.read_units;
    }
}
