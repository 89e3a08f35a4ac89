//! Locks of one store, taken in several ways in turns: one at a time, by many tasks, and handed over between processes.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::child::{Child, say};
use crate::database::now_ns;
use crate::figures::{median, percentile, table};
use crate::records::Case;
use leasehold_servers::proxy::Proxy;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use super::Result;
use super::cost::{Cost, Meter, us_each};
use super::samples::{self, Samples};

/// The default of leasehold.
pub const TTL: Duration = Duration::from_secs(30);
const TASKS: usize = 64;
/// The processes that hand one lock over, and how long each holds it and then leaves it to others.
const PROCESSES: usize = 4;
const HOLD: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Leases that are held at once, and how many are acquired at a time.
const LEASES: usize = 1_000;
const CROWD: usize = 64;
/// The longest wait for a child process.
const PATIENCE: Duration = Duration::from_secs(120);

/// A way to take a lock.
pub trait Peer: Clone + Send + Sized + 'static {
    /// Connects to a store.
    fn open(name: &str, url: &str) -> impl Future<Output = Result<Self>>;

    /// Waits for the lock, holds it for a while, and releases it. Returns the instants of the grant and of the request to
    /// release, by the machine's clock.
    fn lock(&mut self, key: &str, hold: Duration) -> impl Future<Output = Held> + Send;
}

/// The instants of a grant and of its release.
pub type Held = std::result::Result<(i64, i64), String>;

/// Rests while a lock is held, and returns the instants around it.
pub async fn held(hold: Duration) -> (i64, i64) {
    let granted = now_ns();
    rest(hold).await;
    (granted, now_ns())
}

/// A timer waits a millisecond even for nothing.
async fn rest(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// The lengths of all parts.
pub struct Plan {
    /// Turns of each peer.
    pub rounds: usize,
    /// The length of a turn.
    pub round: Duration,
    /// The time of the processes that hand a lock over.
    pub contended: Duration,
    /// The time for which leases are held.
    pub hold: Duration,
}

impl Plan {
    /// For figures that are kept.
    const FULL: Self = Self {
        rounds: 15,
        round: Duration::from_millis(500),
        contended: Duration::from_secs(10),
        hold: Duration::from_secs(30),
    };
    /// For a first look.
    const QUICK: Self = Self {
        rounds: 7,
        round: Duration::from_millis(100),
        contended: Duration::from_secs(2),
        hold: Duration::from_secs(11),
    };
    /// Proves that everything works, and nothing else.
    const TRIAL: Self = Self {
        rounds: 1,
        round: Duration::from_millis(20),
        contended: Duration::from_millis(300),
        hold: Duration::from_millis(100),
    };

    /// The one that the arguments of this program choose.
    ///
    /// # Errors
    /// For other arguments.
    pub fn chosen() -> Result<Self> {
        let args = Args::of_benchmark(&[], &["--quick", "--trial"])?;
        Ok(match (args.has("--trial"), args.has("--quick")) {
            (true, _) => Self::TRIAL,
            (false, true) => Self::QUICK,
            (false, false) => Self::FULL,
        })
    }
}

/// The peers of a case, by the name and the url of each.
pub type Places<'a> = &'a [(&'a str, String)];

async fn open_all<P: Peer>(places: Places<'_>) -> Result<Vec<P>> {
    let mut peers = Vec::new();
    for (name, url) in places {
        peers.push(P::open(name, url).await.map_err(|error| format!("{name}: {error}"))?);
    }
    Ok(peers)
}

/// One pair at a time, each peer in its turn. The first one is the base of all ratios.
///
/// # Errors
/// A peer's.
pub fn one_client<P: Peer>(case: &str, places: Places<'_>, plan: &Plan) -> Result {
    println!("{case}: acquire and release, one at a time, async (tokio, one thread)\n");
    let mut seen: Vec<Samples> = places.iter().map(|_| Samples::default()).collect();
    runtime()?.block_on(async {
        let mut peers: Vec<P> = open_all(places).await?;
        for round in 0..=plan.rounds {
            for (peer, seen) in peers.iter_mut().zip(&mut seen) {
                let (mut times, meter) = (Vec::new(), Meter::start(&[])?);
                let end = Instant::now() + plan.round;
                while Instant::now() < end {
                    let start = Instant::now();
                    peer.lock("one", Duration::ZERO).await?;
                    times.push(start.elapsed().as_nanos() as u64);
                }
                let cost = meter.stop()?;
                // The first round warms up.
                if round > 0 {
                    seen.add(times, cost);
                }
            }
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let mut rows = vec![["", "p50", "p99", "CPU here", "p50 by the first"].map(str::to_owned).to_vec()];
    let all: Vec<_> = places.iter().zip(&seen).map(|((name, _), seen)| (*name, seen)).collect();
    for (name, this) in &all {
        let us = [this.us(0.5), this.us(0.99), this.client_us()].map(|us| format!("{us:.1} us"));
        let ratio = format!("{:.2}", this.ratio(seen[0].rounds()));
        rows.push(std::iter::once((*name).to_owned()).chain(us).chain([ratio]).collect());
    }
    println!("{}", table(&rows));
    samples::tell(case, &all);
    Ok(())
}

/// Many pairs at once, each task with a key of its own.
///
/// # Errors
/// A peer's.
pub fn many_tasks<P: Peer>(places: Places<'_>, plan: &Plan) -> Result {
    let case = format!("{TASKS} tasks on one thread");
    println!("{case}, a key each\n");
    let mut rates: Vec<Vec<f64>> = places.iter().map(|_| Vec::new()).collect();
    let mut costs: Vec<(Cost, usize)> = places.iter().map(|_| (Cost::default(), 0)).collect();
    runtime()?.block_on(async {
        let peers: Vec<P> = open_all(places).await?;
        for round in 0..=plan.rounds {
            for (at, peer) in peers.iter().enumerate() {
                let meter = Meter::start(&[])?;
                let pairs = all_tasks(peer, Instant::now() + plan.round).await?;
                let cost = meter.stop()?;
                if round > 0 {
                    rates[at].push(pairs as f64 / cost.wall.as_secs_f64());
                    costs[at].0 += cost;
                    costs[at].1 += pairs;
                }
            }
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let mut rows = vec![["", "pairs per s", "CPU here", "the first by this"].map(str::to_owned).to_vec()];
    let (mut each_us, mut cpu_us) = (Vec::new(), Vec::new());
    for (at, (name, _)) in places.iter().enumerate() {
        let ratios: Vec<f64> = rates[0].iter().zip(&rates[at]).map(|(first, this)| first / this).collect();
        let cpu = us_each(costs[at].0.client, costs[at].1);
        each_us.push((*name, 1e6 / median(&rates[at]), median(&ratios)));
        cpu_us.push((*name, cpu));
        let rate = format!("{:.0}", median(&rates[at]));
        rows.push(vec![(*name).to_owned(), rate, format!("{cpu:.1} us"), format!("{:.2}", median(&ratios))]);
    }
    println!("{}", table(&rows));
    Case(&case, "time per pair, overall", "us").in_turns(&each_us);
    Case(&case, "CPU", "us").side_by_side(&cpu_us);
    Ok(())
}

async fn all_tasks<P: Peer>(peer: &P, end: Instant) -> Result<usize> {
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let mut peer = peer.clone();
            tokio::spawn(async move {
                let key = format!("task/{task}");
                let mut pairs = 0;
                while Instant::now() < end {
                    peer.lock(&key, Duration::ZERO).await?;
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

/// One lock that several processes want: the time from the request to release it to the grant of the next process.
///
/// # Errors
/// A process that ends early.
pub fn contended(places: Places<'_>, plan: &Plan) -> Result {
    let case = format!("{PROCESSES} processes want one lock");
    println!("{case}: they hold it for {HOLD:?} and pause for {PAUSE:?}\n");
    let mut rows = vec![["", "locks per s", "hand-over p50", "p99"].map(str::to_owned).to_vec()];
    let (mut medians, mut tails, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for (name, url) in places {
        let (mut handovers, locks) = handovers(name, url, plan.contended)?;
        handovers.sort_unstable();
        let [p50, p99] = [0.5, 0.99].map(|share| percentile(&handovers, share) as f64 / 1e6);
        let per_s = locks as f64 / plan.contended.as_secs_f64();
        rows.push(vec![(*name).to_owned(), format!("{per_s:.0}"), format!("{p50:.2} ms"), format!("{p99:.2} ms")]);
        medians.push((*name, p50));
        tails.push((*name, p99));
        rates.push((*name, 1e3 / per_s));
    }
    println!("{}", table(&rows));
    Case(&case, "time per lock, overall", "ms").side_by_side(&rates);
    Case(&case, "hand-over p50", "ms").side_by_side(&medians);
    Case(&case, "hand-over p99", "ms").side_by_side(&tails);
    Ok(())
}

/// The times from a release to the grant of another process in nanoseconds, and the number of grants.
fn handovers(name: &str, url: &str, time: Duration) -> Result<(Vec<u64>, usize)> {
    let (sender, receiver) = channel();
    let mut children = Vec::new();
    for number in 0..PROCESSES {
        let sender = sender.clone();
        let hear = move |line: Option<&str>| drop(sender.send((number, line.map(str::to_owned))));
        children.push(Child::start(&["contend", name, url, &time.as_millis().to_string()], hear)?);
    }
    let (mut all, mut ended) = (Vec::new(), 0);
    while ended < PROCESSES {
        let (number, line) = receiver.recv_timeout(time + PATIENCE)?;
        let Some(line) = line else {
            ended += 1;
            continue;
        };
        let (granted, released) = line.split_once(' ').ok_or_else(|| format!("odd answer: {line}"))?;
        all.push((granted.parse::<i64>()?, released.parse::<i64>()?, number));
    }
    all.sort_unstable();
    let between = all.windows(2).filter(|pair| pair[0].2 != pair[1].2);
    let times = between.map(|pair| u64::try_from(pair[1].0 - pair[0].1).unwrap_or(0)).collect();
    Ok((times, all.len()))
}

/// One thousand leases held for a while: their renewals, as a proxy counts them on their way.
///
/// # Errors
/// A holder that ends early.
pub fn holding(unit: &str, url: &str, proxy: &Proxy, plan: &Plan) -> Result {
    println!("{LEASES} leases of {TTL:?} held for {:?}, in a process of their own\n", plan.hold);
    let (sender, receiver) = channel();
    let hear = move |line: Option<&str>| drop(sender.send(line.map(str::to_owned)));
    let child = Child::start(&["hold", url, &plan.hold.as_millis().to_string()], hear)?;
    let next = || receiver.recv_timeout(PATIENCE)?.ok_or_else(|| "the holder has ended".into());
    let ready: Result<String> = next();
    ready?;
    let before = proxy.requests();
    let done: Result<String> = next();
    let requests = proxy.requests() - before;
    drop(child);
    let done = done?;
    let (cpu_us, lost) = done.split_once(' ').ok_or_else(|| format!("odd answer: {done}"))?;
    let (per_s, cpu_ms) = (requests as f64 / plan.hold.as_secs_f64(), cpu_us.parse::<f64>()? / 1e3);
    println!("{requests} {unit}, {per_s:.1} in a second; CPU here {cpu_ms:.0} ms; lost {lost}\n");
    let case = format!("{LEASES} leases of {} s held for {} s", TTL.as_secs(), plan.hold.as_secs());
    Case(&case, &format!("{unit} in a second"), "1").alone(per_s);
    Case(&case, "CPU", "ms").alone(cpu_ms);
    Case(&case, "lost", "1").alone(lost.parse()?);
    Ok(())
}

/// The part of a child process.
///
/// # Errors
/// A peer's, and an unknown part.
pub fn work<P: Peer>(part: &[&str]) -> Result {
    match part {
        ["contend", name, url, time] => contend::<P>(name, url, Duration::from_millis(time.parse()?)),
        ["hold", url, time] => hold(url, Duration::from_millis(time.parse()?)),
        other => Err(format!("no such part: {other:?}").into()),
    }
}

fn contend<P: Peer>(name: &str, url: &str, time: Duration) -> Result {
    runtime()?.block_on(async {
        let mut peer = P::open(name, url).await?;
        let end = Instant::now() + time;
        while Instant::now() < end {
            let (granted, released) = peer.lock("contended", HOLD).await?;
            say(&format!("{granted} {released}"));
            rest(PAUSE).await;
        }
        Ok(())
    })
}

fn hold(url: &str, time: Duration) -> Result {
    runtime()?.block_on(async {
        let client = leasehold::Client::connect(url).await?;
        let mut held = Vec::with_capacity(LEASES);
        let names: Vec<String> = (0..LEASES).map(|n| format!("held/{n}")).collect();
        for names in names.chunks(CROWD) {
            let tasks: Vec<_> = names
                .iter()
                .map(|name| {
                    let request = client.lock(name).ttl(TTL);
                    tokio::spawn(async move { request.await })
                })
                .collect();
            for task in tasks {
                held.push(task.await??);
            }
        }
        let start = clock_gettime(ClockId::ProcessCPUTime);
        say("ready");
        tokio::time::sleep(time).await;
        let end = clock_gettime(ClockId::ProcessCPUTime);
        let us = (end.tv_sec - start.tv_sec) * 1_000_000 + (end.tv_nsec - start.tv_nsec) / 1_000;
        let lost = held.iter().filter(|lease| lease.is_lost()).count();
        say(&format!("{us} {lost}"));
        // The records run out by themselves; giving back this many would only take time.
        std::process::exit(0);
    })
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
