//! The cost of a quorum of five Redis servers, compared with five bare commands at the same time and with rslock.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use leasehold_bench::args::Args;
use leasehold_bench::figures::table;
use leasehold_bench::peers::bare::Bare;
use leasehold_bench::peers::cost::Meter;
use leasehold_bench::peers::samples::{self, Samples};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const NODES: usize = 5;
const TTL: Duration = Duration::from_secs(30);

pub(crate) fn main() -> ExitCode {
    leasehold_bench::exit_code("bench-quorum", measure())
}

/// A peer that can take a lock on all nodes and release it.
enum Peer {
    Bare(Vec<Bare>),
    Leasehold(leasehold::Client),
    Rslock(rslock::LockManager),
}

impl Peer {
    async fn pair(&self, key: &str) -> Result {
        match self {
            Self::Bare(nodes) => {
                all(nodes, key, Step::Take).await?;
                all(nodes, key, Step::Free).await
            }
            Self::Leasehold(client) => Ok(client.lock(key).ttl(TTL).await?.release().await?),
            Self::Rslock(manager) => {
                let lock = manager.lock(key, TTL).await.map_err(|error| format!("rslock: {error:?}"))?;
                manager.unlock(&lock).await;
                Ok(())
            }
        }
    }
}

/// The step.
#[derive(Clone, Copy)]
enum Step {
    Take,
    Free,
}

/// All at once; done when all have answered.
async fn all(nodes: &[Bare], key: &str, step: Step) -> Result {
    let ask = |node: &Bare| {
        let (mut node, key) = (node.clone(), key.to_owned());
        async move {
            match step {
                Step::Take => node.take(&key, TTL).await,
                Step::Free => node.free(&key).await,
            }
        }
    };
    let mut asked: JoinSet<_> = nodes.iter().map(ask).collect();
    while let Some(answer) = asked.join_next().await {
        if !answer?? {
            return Err("somebody else was there".into());
        }
    }
    Ok(())
}

fn measure() -> Result {
    let args = Args::of_benchmark(&[], &["--quick"])?;
    let (rounds, round) =
        if args.has("--quick") { (7, Duration::from_millis(200)) } else { (15, Duration::from_millis(1_000)) };
    let servers: Vec<Server> = (0..NODES).map(|_| Server::start()).collect();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let version = servers[0].info("redis_version").unwrap_or_default();
    println!("{}", surroundings(&format!("{NODES} times Redis {version} on 127.0.0.1, without persistence")));
    println!("One client, one lock at a time, on a quorum of {NODES}\n");

    let names = [format!("{NODES} bare commands at once"), "leasehold".to_owned(), "rslock".to_owned()];
    let mut seen: Vec<Samples> = names.iter().map(|_| Samples::default()).collect();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut bare = Vec::new();
        let mut clients = Vec::new();
        for url in &urls {
            bare.push(Bare::connect(url).await?);
            clients.push(redis::Client::open(url.as_str())?);
        }
        let ours = leasehold::Client::builder().create_quorum().connect(urls.as_slice()).await?;
        let rslock = rslock::LockManager::from_clients(clients);
        let peers = [Peer::Bare(bare), Peer::Leasehold(ours), Peer::Rslock(rslock)];
        for at in 0..=rounds {
            for (peer, seen) in peers.iter().zip(&mut seen) {
                let (mut times, meter) = (Vec::new(), Meter::start(&servers)?);
                let end = Instant::now() + round;
                while Instant::now() < end {
                    let start = Instant::now();
                    peer.pair("one").await?;
                    times.push(start.elapsed().as_nanos() as u64);
                }
                let cost = meter.stop()?;
                // The first round warms up.
                if at > 0 {
                    seen.add(times, cost);
                }
            }
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;

    let case = "one client, async";
    samples::tell(case, &names.iter().map(String::as_str).zip(&seen).collect::<Vec<_>>());
    let heads = ["acquire + release", "p50", "p99", "CPU here", "CPU in Redis", "p50 by bare"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let bare = seen[0].rounds();
    for (name, seen) in names.iter().cloned().zip(&seen) {
        let us = [seen.us(0.5), seen.us(0.99), seen.client_us(), seen.server_us()].map(|us| format!("{us:.1} us"));
        rows.push(std::iter::once(name).chain(us).chain([format!("{:.2}", seen.ratio(bare))]).collect());
    }
    println!("{}", table(&rows));
    one_round_trip(&servers, &urls)
}

/// Counts requests: without contention, an acquire and a release need one request to each node.
fn one_round_trip(servers: &[Server], urls: &[String]) -> Result {
    const PAIRS: u64 = 1_000;
    let client = leasehold::blocking::Client::connect(urls)?;
    let pair = || client.lock("counted").ttl(TTL).acquire()?.release();
    pair()?;
    let calls = || servers.iter().map(|server| server.commands_processed("evalsha")).sum::<u64>();
    let before = calls();
    (0..PAIRS).try_for_each(|_| pair())?;
    let each = (calls() - before) as f64 / (PAIRS * NODES as u64) as f64;
    println!("script calls of each node, for one acquire and one release: {each:.3}");
    Case("acquire and release", "script calls of each node", "1").alone(each);
    Ok(())
}
