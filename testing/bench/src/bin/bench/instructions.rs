//! The instructions and allocations of one acquire, renewal and release, in a client and in Redis, counted by Valgrind. Unlike
//! times, they are the same on a machine with other work to do.
//!
//! A process that does a step more than another differs from it by that step alone.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use leasehold_bench::args::Args;
use leasehold_bench::child::{self, PART};
use leasehold_bench::figures::table;
use leasehold_bench::peers::bare::Bare;
use leasehold_bench::peers::{Result, surroundings};
use leasehold_bench::records::Case;
use leasehold_bench::valgrind::Tool;
use leasehold_servers::redis::Server;
use tokio::runtime::Builder;

const BENCHMARK: &str = "instructions";
const TTL: Duration = Duration::from_secs(600);
/// Far above the time in which Valgrind does one step with all locks.
const RENEW_EVERY: Duration = Duration::from_secs(8);
/// The locks of one process.
const LOCKS: usize = 200;
const LOCKS_OF_TRIAL: usize = 20;
const PEERS: [&str; 3] = ["bare commands", "leasehold", "rslock"];
const OURS: &str = "leasehold";

/// The last step that a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Each lock has been taken and released often enough for what a client learns of it.
    Warm,
    Acquire,
    Renew,
    Release,
}

impl Step {
    const ALL: [Self; 4] = [Self::Warm, Self::Acquire, Self::Renew, Self::Release];

    fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
        }
    }

    fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name).ok_or_else(|| format!("no such step: {name}").into())
    }
}

pub fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => work(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-instructions", result)
}

fn measure() -> Result {
    let args = Args::of_benchmark(&[], &["--quick", "--trial"])?;
    let locks = if args.has("--trial") { LOCKS_OF_TRIAL } else { LOCKS };
    let server = Server::start();
    let version = server.info("redis_version").unwrap_or_default();
    println!("{}", surroundings(&format!("Redis {version} on 127.0.0.1, without persistence")));
    drop(server);
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let mut rows = vec![["of one", "", "client", "allocations", "Redis"].map(str::to_owned).to_vec()];
    for who in PEERS {
        let mut counts = Vec::new();
        let steps = Step::ALL.into_iter().filter(|step| *step != Step::Renew || who == OURS);
        for step in steps {
            let client = in_client(Tool::Instructions, &log, who, step, locks)?;
            let blocks = in_client(Tool::Allocations, &log, who, step, locks)?;
            counts.push((step, [client, blocks, in_server(&log, who, step, locks)?]));
        }
        let mut pair = [0.0; 3];
        for (step, after) in &counts[1..] {
            // A lease is held before it is renewed or released.
            let base = if *step == Step::Acquire { Step::Warm } else { Step::Acquire };
            let (_, before) = counts.iter().find(|(step, _)| *step == base).ok_or("no base")?;
            let each: [f64; 3] = std::array::from_fn(|at| after[at].saturating_sub(before[at]) as f64 / locks as f64);
            tell(step.name(), who, each, &mut rows);
            if *step != Step::Renew {
                pair.iter_mut().zip(each).for_each(|(sum, one)| *sum += one);
            }
        }
        tell("pair", who, pair, &mut rows);
    }
    println!("{}", table(&rows));
    Ok(())
}

fn tell(what: &str, who: &str, [client, blocks, server]: [f64; 3], rows: &mut Vec<Vec<String>>) {
    let case = format!("one {what}, Redis");
    Case(&case, "instructions of the client", "1").of(who, client.round());
    Case(&case, "allocations of the client", "1").of(who, blocks.round());
    Case(&case, "instructions of Redis", "1").of(who, server.round());
    let numbers = [client, blocks, server].map(|number| format!("{number:.0}"));
    rows.push([what.to_owned(), who.to_owned()].into_iter().chain(numbers).collect());
}

fn arguments(url: &str, who: &str, step: Step, locks: usize) -> [String; 6] {
    [BENCHMARK, PART, url, who, step.name(), &locks.to_string()].map(str::to_owned)
}

fn in_client(tool: Tool, log: &Path, who: &str, step: Step, locks: usize) -> Result<u64> {
    let server = Server::start();
    let mut command = tool.command(log, std::env::current_exe()?);
    run(command.args(arguments(&server.url(), who, step, locks)))?;
    Ok(tool.counted(log)?)
}

fn in_server(log: &Path, who: &str, step: Step, locks: usize) -> Result<u64> {
    let tool = Tool::Instructions;
    let server = Server::builder().arg("--hz", "1").run_by(&tool.command(log, "redis-server")).start();
    run(Command::new(std::env::current_exe()?).args(arguments(&server.url(), who, step, locks)))?;
    drop(server);
    Ok(tool.counted(log)?)
}

fn run(command: &mut Command) -> Result {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("a process that was counted ended with {status}").into()),
        Err(error) => Err(format!("{} cannot be started: {error}", command.get_program().display()).into()),
    }
}

fn work(part: &[&str]) -> Result {
    let [url, who, step, locks] = part else { return Err(format!("no such part: {part:?}").into()) };
    let (step, names) = (Step::named(step)?, (0..locks.parse()?).map(|lock: usize| format!("invoice/{lock}")));
    let names: Vec<String> = names.collect();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        match *who {
            OURS => leasehold(url, step, &names).await,
            "rslock" => rslock(url, step, &names).await,
            _ => bare(url, step, &names).await,
        }
    })?;
    // Nothing that a client does at its end is counted.
    std::process::exit(0);
}

async fn leasehold(url: &str, step: Step, names: &[String]) -> Result {
    let client = leasehold::Client::connect(url).await?;
    let lock = |name| client.lock(name).ttl(TTL).renew_every(RENEW_EVERY);
    for _ in 0..3 {
        for name in names {
            lock(name).await?.release().await?;
        }
    }
    let mut leases = Vec::with_capacity(names.len());
    if step >= Step::Acquire {
        for name in names {
            leases.push(lock(name).await?);
        }
    }
    if step == Step::Renew {
        let fresh = leases.last().map_or(TTL, leasehold::Lease::remaining);
        tokio::time::sleep(RENEW_EVERY * 3 / 2).await;
        let renewed = leases.iter().filter(|lease| lease.remaining() + RENEW_EVERY > fresh).count();
        if renewed < leases.len() {
            return Err(format!("{renewed} of {} leases were renewed in time", leases.len()).into());
        }
    }
    if step == Step::Release {
        for lease in &leases {
            lease.release().await?;
        }
    }
    std::mem::forget(leases);
    Ok(())
}

async fn rslock(url: &str, step: Step, names: &[String]) -> Result {
    let manager = rslock::LockManager::from_clients(vec![redis::Client::open(url)?]);
    let taken =
        async |name: &String| manager.lock(name.as_str(), TTL).await.map_err(|error| format!("rslock: {error:?}"));
    for _ in 0..3 {
        for name in names {
            manager.unlock(&taken(name).await?).await;
        }
    }
    let mut locks = Vec::with_capacity(names.len());
    if step >= Step::Acquire {
        for name in names {
            locks.push(taken(name).await?);
        }
    }
    if step == Step::Release {
        for lock in &locks {
            manager.unlock(lock).await;
        }
    }
    std::mem::forget(locks);
    Ok(())
}

async fn bare(url: &str, step: Step, names: &[String]) -> Result {
    let mut bare = Bare::connect(url).await?;
    for _ in 0..3 {
        for name in names {
            bare.take(name, TTL).await?;
            bare.free(name).await?;
        }
    }
    if step >= Step::Acquire {
        for name in names {
            bare.take(name, TTL).await?;
        }
    }
    if step == Step::Release {
        for name in names {
            bare.free(name).await?;
        }
    }
    Ok(())
}
