//! Looking and steering: the time and memory of a list of many locks, and the time from a revoke until the lock is free.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use leasehold::blocking;
use leasehold_bench::args::Args;
use leasehold_bench::child::{self, Child, say};
use leasehold_bench::figures::{median, table};
use leasehold_bench::peers::{Result, surroundings};
use leasehold_bench::records::Case;
use leasehold_bench::rng::Rng;
use leasehold_servers::redis::Server;

/// Longer than any run.
const LONG: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(120);
/// Acquisitions under way at once.
const CROWD: usize = 64;
const LIST: &str = "list";
const HOLD: &str = "hold";
const LOCK: &str = "revoked";

pub(crate) fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => match &part[..] {
            [name, store] if name == LIST => list(store),
            [name, store, millis] if name == HOLD => {
                millis.parse().map_err(Into::into).and_then(|millis| hold(store, Duration::from_millis(millis)))
            }
            other => Err(format!("no such part: {other:?}").into()),
        },
        None => measure(),
    };
    leasehold_bench::exit_code("bench-admin", result)
}

fn measure() -> Result {
    let args = Args::of_benchmark(&[], &["--quick", "--trial"])?;
    // Of leases that are revoked.
    let (locks, lists, revokes, ttl_ms) = match (args.has("--trial"), args.has("--quick")) {
        (true, _) => (300, 1, 1, 500),
        (false, true) => (10_000, 3, 3, 3_000),
        (false, false) => (100_000, 5, 20, 3_000),
    };
    let folder = tempfile::tempdir()?;
    let server = Server::start();
    println!("{}", surroundings("Redis on 127.0.0.1, without persistence; a SQLite file"));
    let sqlite = format!("sqlite:{}", folder.path().join("locks.db").display());
    println!("A list of {locks} locks, in a process of its own\n");
    let mut rows = vec![["store", "time", "memory meanwhile"].map(str::to_owned).to_vec()];
    for (name, store) in [("Redis", server.url()), ("SQLite", sqlite)] {
        fill(&store, locks)?;
        rows.push(measure_lists(name, &store, locks, lists)?);
    }
    println!("{}", table(&rows));
    server.command(&["FLUSHALL"]);
    measure_revokes(&server.url(), revokes, Duration::from_millis(ttl_ms))
}

/// Acquires that many locks, which then run out by themselves.
fn fill(store: &str, locks: usize) -> Result {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let client = leasehold::Client::connect(store).await?;
        let names: Vec<usize> = (0..locks).collect();
        for names in names.chunks(CROWD) {
            let ask = |name| tokio::spawn(client.lock(format!("invoice/{name}")).ttl(LONG).no_renewal().into_future());
            for task in names.iter().map(ask).collect::<Vec<_>>() {
                // Dropped, it would be released.
                std::mem::forget(task.await??);
            }
        }
        std::mem::forget(client);
        Ok(())
    })
}

fn measure_lists(name: &str, store: &str, locks: usize, times: usize) -> Result<Vec<String>> {
    let (mut seconds, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let (mut child, lines) = start(&[LIST, store])?;
        let line: String = next(&lines)?;
        child.wait()?;
        let figures = line.split(' ').map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
        let [found, micros, memory] = figures[..] else { return Err(format!("odd answer: {line}").into()) };
        if found as usize != locks {
            return Err(format!("{name}: {found} of {locks} locks were listed").into());
        }
        seconds.push(micros / 1e6);
        bytes.push(memory);
    }
    let case = format!("a list of {locks} locks, {name}");
    Case(&case, "time", "ms").alone(median(&seconds) * 1e3);
    Case(&case, "memory", "bytes").alone(median(&bytes));
    Ok(vec![name.to_owned(), format!("{:.2} s", median(&seconds)), format!("{:.1} MiB", median(&bytes) / 1_048_576.0)])
}

/// Lists all locks, and says how many, the time, and the memory that this took at most.
fn list(store: &str) -> Result {
    let client = blocking::Client::connect(store)?;
    client.list("no such name").count();
    let (before, start) = (most_resident(), Instant::now());
    let mut found = 0;
    for lock in client.list("") {
        lock?;
        found += 1;
    }
    say(&format!("{found} {} {}", start.elapsed().as_micros(), most_resident().saturating_sub(before)));
    Ok(())
}

fn measure_revokes(store: &str, times: usize, ttl: Duration) -> Result {
    println!("A lease of {ttl:?} is revoked: until the next one has the lock, in ttl\n");
    let mut rows = vec![["holder", "median", "most"].map(str::to_owned).to_vec()];
    let client = blocking::Client::connect(store)?;
    let mut rng = Rng::new(1, 1);
    for (case, is_stopped) in [("a holder that listens is revoked", false), ("a stopped holder is revoked", true)] {
        let mut shares = Vec::new();
        for _ in 0..times {
            let (mut holder, lines) = start(&[HOLD, store, &ttl.as_millis().to_string()])?;
            let token: u64 = next(&lines)?.parse()?;
            // At any time between two renewals.
            thread::sleep(rng.between(Duration::ZERO, ttl / 3));
            if is_stopped {
                holder.stop();
            }
            let start = Instant::now();
            client.revoke(LOCK, token)?;
            let lease = client.lock(LOCK).ttl(ttl).wait(PATIENCE).acquire()?;
            shares.push(start.elapsed().as_secs_f64() / ttl.as_secs_f64());
            lease.release()?;
            holder.kill();
        }
        let most = shares.iter().copied().fold(0.0, f64::max);
        Case(case, "until the next one has the lock", "ttl").alone(median(&shares));
        rows.push(vec![case.to_owned(), format!("{:.2}", median(&shares)), format!("{most:.2}")]);
    }
    println!("{}", table(&rows));
    Ok(())
}

/// Holds the lock until it is lost, and gives it back at once.
fn hold(store: &str, ttl: Duration) -> Result {
    let lease = blocking::Client::connect(store)?.lock(LOCK).ttl(ttl).wait(PATIENCE).acquire()?;
    say(&lease.token().to_string());
    let loss = lease.lost();
    match lease.release() {
        Err(error) if error.lost_reason() == Some("revoked") => Ok(()),
        _ => Err(loss.into()),
    }
}

fn start(part: &[&str]) -> Result<(Child, Receiver<Option<String>>)> {
    let (sender, lines) = channel();
    let hear = move |line: Option<&str>| {
        // Nobody listens any more once the figure is there.
        let _ = sender.send(line.map(str::to_owned));
    };
    Ok((Child::start(part, hear)?, lines))
}

fn next(lines: &Receiver<Option<String>>) -> Result<String> {
    lines.recv_timeout(PATIENCE)?.ok_or_else(|| "the process has ended".into())
}

/// The most memory that this process has had so far, in bytes.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
