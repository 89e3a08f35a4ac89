//! The cost of leasehold on Redis, compared with the bare commands and with other libraries, in turns and in one run.

mod contended;
mod contenders;
mod holding;
mod pairs;
mod recovery;

use std::process::ExitCode;
use std::time::Duration;

use leasehold_bench::args::Args;
use leasehold_bench::child;
use leasehold_bench::peers::{Result, surroundings};
use leasehold_servers::redis::Server;
use tokio::runtime::{Builder, Runtime};

pub(crate) fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => work(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-redis", result)
}

fn work(part: &[&str]) -> Result {
    match part {
        ["contend", url, library, workers, times @ ..] => {
            let times = times.iter().map(|millis| millis.parse().map(Duration::from_millis));
            let times: Vec<Duration> = times.collect::<std::result::Result<_, _>>()?;
            let times = times.try_into().map_err(|_| "three times are needed")?;
            contenders::work(url, library, workers.parse()?, times)
        }
        ["hold", url, library, leases, millis] => {
            holding::work(url, library, leases.parse()?, Duration::from_millis(millis.parse()?))
        }
        ["die", url, ttl] => recovery::work(url, Duration::from_millis(ttl.parse()?)),
        other => Err(format!("no such part: {other:?}").into()),
    }
}

/// The lengths of all parts.
struct Plan {
    rounds: usize,
    round: Duration,
    contended: Duration,
    hold: Duration,
    leases: &'static [usize],
    deaths: usize,
}

impl Plan {
    const FULL: Self = Self {
        rounds: 15,
        round: Duration::from_millis(500),
        contended: Duration::from_secs(10),
        hold: Duration::from_secs(30),
        leases: &[1_000, 100_000],
        deaths: 10,
    };
    const QUICK: Self = Self {
        rounds: 7,
        round: Duration::from_millis(100),
        contended: Duration::from_secs(2),
        hold: Duration::from_secs(11),
        leases: &[1_000],
        deaths: 3,
    };
}

fn measure() -> Result {
    let args = Args::of_benchmark(&["--only"], &["--quick"])?;
    let plan = if args.has("--quick") { Plan::QUICK } else { Plan::FULL };
    let only: Option<String> = args.value("--only")?;
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let server = Server::start();
    let version = server.info("redis_version").unwrap_or_default();
    println!("{}", surroundings(&format!("Redis {version} on 127.0.0.1, without persistence")));
    if wanted("pairs") {
        pairs::one_client(&server, &plan)?;
        pairs::many_tasks(&server, &plan)?;
    }
    if wanted("contended") {
        contended::measure(&server, &plan)?;
    }
    if wanted("holding") {
        holding::measure(&server, &plan)?;
    }
    if wanted("recovery") {
        recovery::measure(&server, &plan)?;
    }
    Ok(())
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
