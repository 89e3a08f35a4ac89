//! Eight workers want one lock: hold it for a millisecond, then pause for ten.

use std::slice;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use leasehold_bench::child::{Child, say};
use leasehold_bench::figures::{percentile, table};
use leasehold_peers::Result;
use leasehold_peers::cost::Meter;
use leasehold_rig::redis::Server;

use super::{Plan, runtime};

const WORKERS: usize = 8;
const HOLD: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(10);
/// A reply that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(server: &Server, plan: &Plan) -> Result {
    println!("{WORKERS} workers want one lock, hold it for 1 ms and pause for 10 ms\n");
    let heads = ["", "per s", "wait p50", "wait p99", "slowest's share", "commands each"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (library, processes) in [("leasehold", 1), ("rslock", 1), ("leasehold", 4), ("rslock", 4)] {
        let where_ = if processes == 1 { "in one process" } else { "in 4 processes" };
        rows.push(run(server, library, processes, plan.contended, &format!("{library} {where_}"))?);
    }
    println!("{}", table(&rows));
    println!(
        "rslock polls every 200 ms unless told otherwise; python-redis-lock is measured with the Python package.\n"
    );
    Ok(())
}

fn run(server: &Server, library: &str, processes: usize, time: Duration, name: &str) -> Result<Vec<String>> {
    server.command(&["FLUSHALL"]);
    let (sender, receiver) = channel();
    let meter = Meter::start(slice::from_ref(server));
    let mut children = Vec::new();
    for _ in 0..processes {
        let sender = sender.clone();
        let hear = move |line: Option<&str>| {
            if let Some(line) = line {
                let _ = sender.send(line.to_owned());
            }
        };
        let (workers, millis) = ((WORKERS / processes).to_string(), time.as_millis().to_string());
        children.push(Child::start(&["contend", &server.url(), library, &workers, &millis], hear)?);
    }
    let mut waits: Vec<u64> = Vec::new();
    let mut shares = Vec::new();
    while shares.len() < WORKERS {
        let line = receiver.recv_timeout(time + PATIENCE)?;
        let times: Vec<u64> = line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        shares.push(times.len());
        waits.extend(times);
    }
    let cost = meter.stop();
    drop(children);
    waits.sort_unstable();
    let fair = waits.len() as f64 / WORKERS as f64;
    let ms = |share| format!("{:.1} ms", percentile(&waits, share) as f64 / 1e6);
    Ok(vec![
        name.to_owned(),
        format!("{:.0}", waits.len() as f64 / time.as_secs_f64()),
        ms(0.5),
        ms(0.99),
        format!("{:.0} %", shares.iter().min().copied().unwrap_or(0) as f64 * 100.0 / fair.max(1.0)),
        format!("{:.1}", cost.commands as f64 / waits.len().max(1) as f64),
    ])
}

/// One process: prints one line for each worker, with its waits in nanoseconds.
pub fn work(url: &str, library: &str, workers: usize, time: Duration) -> Result {
    runtime()?.block_on(async {
        let client = leasehold::Client::connect(url).await?;
        let manager = rslock::LockManager::from_clients(vec![redis::Client::open(url)?]);
        let end = Instant::now() + time;
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let tasks: Vec<_> = (0..workers)
                    .map(|_| {
                        let (client, manager, ours) = (client.clone(), manager.clone(), library == "leasehold");
                        tokio::task::spawn_local(async move {
                            let mut waits = Vec::new();
                            while Instant::now() < end {
                                let start = Instant::now();
                                if ours {
                                    let lease = client.lock("contended").ttl(TTL).await.unwrap();
                                    waits.push(start.elapsed());
                                    tokio::time::sleep(HOLD).await;
                                    lease.release().await.unwrap();
                                } else {
                                    let lock = loop {
                                        match manager.lock("contended", TTL).await {
                                            Ok(lock) => break lock,
                                            Err(_) if Instant::now() < end => {}
                                            Err(_) => return waits,
                                        }
                                    };
                                    waits.push(start.elapsed());
                                    tokio::time::sleep(HOLD).await;
                                    manager.unlock(&lock).await;
                                }
                                tokio::time::sleep(PAUSE).await;
                            }
                            waits
                        })
                    })
                    .collect();
                for task in tasks {
                    let waits = task.await?;
                    say(&waits.iter().map(|wait| wait.as_nanos().to_string()).collect::<Vec<_>>().join(" "));
                }
                Ok(())
            })
            .await
    })
}
