//! Acquire and release, over and over: one client at a time, and 64 tasks with a key each.

use std::slice;
use std::time::{Duration, Instant};

use leasehold_bench::figures::{median, table};
use leasehold_bench::peers::Result;
use leasehold_bench::peers::bare::{Bare, RELEASE, VALUE};
use leasehold_bench::peers::cost::{Cost, Meter, us_each};
use leasehold_bench::peers::samples::{self, Samples};
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;
use tokio::runtime::{Builder, Runtime};

use super::{Plan, runtime};

const TTL: Duration = Duration::from_secs(30);
const TASKS: usize = 64;

/// A peer that can take a lock and release it.
#[derive(Clone)]
enum Peer {
    Bare(Bare),
    Leasehold(leasehold::Client),
    /// Work that is done once: an occurrence of its own in each round.
    Run(leasehold::Client, RunKind, u64),
    Rslock(rslock::LockManager),
}

/// The form of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunKind {
    Plain,
    /// It leaves a result of [`RESULT`] bytes.
    WithResult,
    /// Its attempts are counted.
    Counted,
}

const RESULT: usize = 1_024;

impl Peer {
    async fn pair(&mut self, key: &str) -> Result {
        match self {
            Self::Bare(bare) => {
                let (taken, freed) = (bare.take(key, TTL).await?, bare.free(key).await?);
                if taken && freed { Ok(()) } else { Err("somebody else was there".into()) }
            }
            Self::Leasehold(client) => Ok(client.lock(key).ttl(TTL).await?.release().await?),
            Self::Run(client, kind, run) => {
                *run += 1;
                let once = client.once(key).key(run.to_string()).keep(TTL).ttl(TTL);
                let once = if *kind == RunKind::Counted { once.max_attempts(3) } else { once };
                match (once.await?, kind) {
                    (leasehold::Once::Run(run), RunKind::WithResult) => {
                        Ok(run.finish_with(leasehold::RunResult::Bytes(vec![7; RESULT])).await?)
                    }
                    (leasehold::Once::Run(run), RunKind::Plain | RunKind::Counted) => Ok(run.finish().await?),
                    (other, _) => Err(format!("a fresh key is {other:?}").into()),
                }
            }
            Self::Rslock(manager) => {
                let lock = manager.lock(key, TTL).await.map_err(|error| format!("rslock: {error:?}"))?;
                manager.unlock(&lock).await;
                Ok(())
            }
        }
    }
}

/// Those for one client: also runs, from their begin to their completion.
async fn peers_of_one(url: &str) -> Result<Vec<(&'static str, Peer)>> {
    let mut peers = peers(url).await?;
    let from = u64::try_from(leasehold_bench::database::now_ns()).unwrap_or_default();
    let kinds = [
        ("leasehold, a run", RunKind::Plain),
        ("leasehold, a run with a result", RunKind::WithResult),
        ("leasehold, a run with attempts", RunKind::Counted),
    ];
    for (at, (name, kind)) in kinds.into_iter().enumerate() {
        // No two of them have the same occurrence.
        let from = from + at as u64 * 1_000_000_000_000;
        peers.insert(2 + at, (name, Peer::Run(leasehold::Client::connect(url).await?, kind, from)));
    }
    Ok(peers)
}

async fn peers(url: &str) -> Result<Vec<(&'static str, Peer)>> {
    let rslock = rslock::LockManager::from_clients(vec![redis::Client::open(url)?]);
    Ok(vec![
        ("bare commands", Peer::Bare(Bare::connect(url).await?)),
        ("leasehold", Peer::Leasehold(leasehold::Client::connect(url).await?)),
        ("rslock", Peer::Rslock(rslock)),
    ])
}

/// The first one is the bare one.
fn report(case: &str, seen: &[(&str, Samples)]) {
    let heads = ["acquire + release", "p50", "p99", "CPU here", "CPU in Redis", "p50 by bare"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(seen.iter().map(|(name, this)| {
        let us = [this.us(0.5), this.us(0.99), this.client_us(), this.server_us()].map(|us| format!("{us:.1} us"));
        let ratio = format!("{:.2}", this.ratio(seen[0].1.rounds()));
        std::iter::once((*name).to_owned()).chain(us).chain([ratio]).collect()
    }));
    println!("{}", table(&rows));
    samples::tell(case, &seen.iter().map(|(who, seen)| (*who, seen)).collect::<Vec<_>>());
}

pub fn one_client(server: &Server, plan: &Plan) -> Result {
    let url = server.url();
    println!("One client, one lock at a time, async (tokio, one thread)\n");
    runtime()?.block_on(async {
        let mut peers = peers_of_one(&url).await?;
        let mut seen: Vec<(&str, Samples)> = peers.iter().map(|(name, _)| (*name, Samples::default())).collect();
        for round in 0..=plan.rounds {
            for ((_, peer), (_, seen)) in peers.iter_mut().zip(&mut seen) {
                let (mut times, meter) = (Vec::new(), Meter::start(slice::from_ref(server))?);
                let end = Instant::now() + plan.round;
                while Instant::now() < end {
                    let start = Instant::now();
                    peer.pair("one").await?;
                    times.push(start.elapsed().as_nanos() as u64);
                }
                let cost = meter.stop()?;
                // The first round warms up.
                if round > 0 {
                    seen.add(times, cost);
                }
            }
        }
        report("one client, async", &seen);
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    blocking(server, plan)
}

fn blocking(server: &Server, plan: &Plan) -> Result {
    println!("One client, one lock at a time, blocking\n");
    let url = server.url();
    let client = leasehold::blocking::Client::connect(&url)?;
    let mut connection = redis::Client::open(url.as_str())?.get_connection()?;
    let release: String = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE).query(&mut connection)?;
    let ttl = TTL.as_millis() as u64;
    let mut seen = [("bare commands", Samples::default()), ("leasehold", Samples::default())];
    for round in 0..=plan.rounds {
        for (name, seen) in &mut seen {
            let (mut times, meter) = (Vec::new(), Meter::start(slice::from_ref(server))?);
            let end = Instant::now() + plan.round;
            while Instant::now() < end {
                let start = Instant::now();
                if *name == "leasehold" {
                    client.lock("one").ttl(TTL).acquire()?.release()?;
                } else {
                    let mut set = redis::cmd("SET");
                    let _: Option<String> =
                        set.arg("one").arg(VALUE).arg("NX").arg("PX").arg(ttl).query(&mut connection)?;
                    let _: u64 =
                        redis::cmd("EVALSHA").arg(&release).arg(1).arg("one").arg(VALUE).query(&mut connection)?;
                }
                times.push(start.elapsed().as_nanos() as u64);
            }
            let cost = meter.stop()?;
            if round > 0 {
                seen.add(times, cost);
            }
        }
    }
    report("one client, blocking", &seen);
    Ok(())
}

/// On the runtime of a service with one thread, and of one with several: they wake tasks in different ways.
pub fn many_tasks(server: &Server, plan: &Plan) -> Result {
    tasks_on(server, plan, &runtime()?, "one thread")?;
    tasks_on(server, plan, &Builder::new_multi_thread().worker_threads(2).enable_all().build()?, "two threads")
}

fn tasks_on(server: &Server, plan: &Plan, runtime: &Runtime, threads: &str) -> Result {
    println!("{TASKS} tasks on {threads}, a key each\n");
    let url = server.url();
    runtime.block_on(async {
        let peers = peers(&url).await?;
        let mut rates: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
        let mut costs: Vec<(Cost, usize)> = peers.iter().map(|_| (Cost::default(), 0)).collect();
        for round in 0..=plan.rounds {
            for (at, (_, peer)) in peers.iter().enumerate() {
                let meter = Meter::start(slice::from_ref(server))?;
                let pairs = all_tasks(peer, Instant::now() + plan.round).await?;
                let cost = meter.stop()?;
                if round > 0 {
                    rates[at].push(pairs as f64 / cost.wall.as_secs_f64());
                    costs[at].0 += cost;
                    costs[at].1 += pairs;
                }
            }
        }
        let mut rows =
            vec![["", "pairs per s", "CPU here", "CPU in Redis", "bare by this"].map(str::to_owned).to_vec()];
        let (mut each_us, mut cpu_us, mut redis_us) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (name, _)) in peers.iter().enumerate() {
            let ratios: Vec<f64> = rates[0].iter().zip(&rates[at]).map(|(bare, this)| bare / this).collect();
            let (cost, pairs) = costs[at];
            each_us.push((*name, 1e6 / median(&rates[at]), median(&ratios)));
            cpu_us.push((*name, us_each(cost.client, pairs)));
            redis_us.push((*name, us_each(cost.server, pairs)));
            rows.push(vec![
                (*name).to_owned(),
                format!("{:.0}", median(&rates[at])),
                format!("{:.1} us", us_each(cost.client, pairs)),
                format!("{:.1} us", us_each(cost.server, pairs)),
                format!("{:.2}", median(&ratios)),
            ]);
        }
        println!("{}", table(&rows));
        let case = format!("{TASKS} tasks on {threads}");
        Case(&case, "time per pair, overall", "us").in_turns(&each_us);
        Case(&case, "CPU", "us").side_by_side(&cpu_us);
        Case(&case, "CPU in Redis", "us").side_by_side(&redis_us);
        Ok(())
    })
}

async fn all_tasks(peer: &Peer, end: Instant) -> Result<usize> {
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let mut peer = peer.clone();
            tokio::spawn(async move {
                let key = format!("task/{task}");
                let mut pairs = 0;
                while Instant::now() < end {
                    peer.pair(&key).await.map_err(|error| error.to_string())?;
                    pairs += 1;
                }
                Ok::<usize, String>(pairs)
            })
        })
        .collect();
    let mut pairs = 0;
    for task in tasks {
        pairs += task.await??;
    }
    Ok(pairs)
}
