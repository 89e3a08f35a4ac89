//! Eight workers want one lock, with and without pauses.

use std::slice;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use leasehold_bench::child::{Child, say};
use leasehold_bench::figures::{percentile, table};
use leasehold_bench::records::Case;
use leasehold_chaos::Result;
use leasehold_chaos::cost::Meter;
use leasehold_servers::redis::Server;

use super::{Plan, runtime};

const WORKERS: usize = 8;
/// How long a worker holds the lock, and then leaves it to others.
const PACES: [(&str, Duration, Duration); 2] = [
    ("want one lock", Duration::from_millis(1), Duration::from_millis(10)),
    ("want one lock without pauses", Duration::ZERO, Duration::ZERO),
];
const TTL: Duration = Duration::from_secs(10);
/// A reply that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(server: &Server, plan: &Plan) -> Result {
    println!("{WORKERS} workers want one lock: they hold it for 1 ms and pause for 10 ms, or do neither\n");
    let heads = ["", "per s", "wait p50", "wait p99", "slowest's share", "commands each"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for ((want, hold, pause), processes) in PACES.into_iter().flat_map(|pace| [(pace, 1), (pace, 4)]) {
        let where_ = if processes == 1 { "in one process" } else { "in 4 processes" };
        let workers = [WORKERS / processes, plan.contended.as_millis() as usize];
        let times = [hold, pause].map(|time| time.as_millis() as usize);
        let numbers = [workers, times].concat();
        let [ours, rslock] = ["leasehold", "rslock"].map(|library| run(server, library, processes, plan, &numbers));
        let (ours, rslock) = (ours?, rslock?);
        let case = format!("{WORKERS} workers {want}, {where_}");
        rows.push(ours.row(&format!("leasehold, {case}")));
        rows.push(rslock.row(&format!("rslock, {case}")));
        tell(&case, &ours, &rslock);
    }
    println!("{}", table(&rows));
    println!(
        "rslock polls every 200 ms unless told otherwise; python-redis-lock is measured with the Python package.\n"
    );
    Ok(())
}

/// The results of all workers together.
struct Crowd {
    per_s: f64,
    /// Nanoseconds, sorted.
    waits: Vec<u64>,
    /// The share of the slowest worker in its fair share, in per cent.
    slowest: f64,
    /// The commands to Redis for each lock.
    commands: f64,
}

impl Crowd {
    fn wait_ms(&self, share: f64) -> f64 {
        percentile(&self.waits, share) as f64 / 1e6
    }

    fn row(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            format!("{:.0}", self.per_s),
            format!("{:.1} ms", self.wait_ms(0.5)),
            format!("{:.1} ms", self.wait_ms(0.99)),
            format!("{:.0} %", self.slowest),
            format!("{:.1}", self.commands),
        ]
    }
}

/// Records the figures. A bare loop would have to poll, so ours is compared with rslock.
fn tell(case: &str, ours: &Crowd, rslock: &Crowd) {
    let both = |of: fn(&Crowd) -> f64| [("rslock", of(rslock)), ("leasehold", of(ours))];
    Case(case, "time per lock, overall", "ms").side_by_side(&both(|crowd| 1e3 / crowd.per_s));
    Case(case, "wait p50", "ms").side_by_side(&both(|crowd| crowd.wait_ms(0.5)));
    Case(case, "wait p99", "ms").side_by_side(&both(|crowd| crowd.wait_ms(0.99)));
    Case(case, "commands", "1").side_by_side(&both(|crowd| crowd.commands));
    both(|crowd| crowd.slowest)
        .iter()
        .for_each(|(who, slowest)| Case(case, "share of the slowest", "%").of(who, *slowest));
}

fn run(server: &Server, library: &str, processes: usize, plan: &Plan, numbers: &[usize]) -> Result<Crowd> {
    let time = plan.contended;
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
        let (url, numbers) = (server.url(), numbers.iter().map(ToString::to_string).collect::<Vec<_>>());
        let part = ["contend", &url, library].into_iter().chain(numbers.iter().map(String::as_str));
        children.push(Child::start(&part.collect::<Vec<_>>(), hear)?);
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
    Ok(Crowd {
        per_s: waits.len() as f64 / time.as_secs_f64(),
        slowest: shares.iter().min().copied().unwrap_or(0) as f64 * 100.0 / fair.max(1.0),
        commands: cost.commands as f64 / waits.len().max(1) as f64,
        waits,
    })
}

/// One process: prints one line for each worker, with its waits in nanoseconds.
pub fn work(url: &str, library: &str, workers: usize, [time, hold, pause]: [Duration; 3]) -> Result {
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
                                    rest(hold).await;
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
                                    rest(hold).await;
                                    manager.unlock(&lock).await;
                                }
                                rest(pause).await;
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

/// A timer waits a millisecond even for nothing.
async fn rest(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
