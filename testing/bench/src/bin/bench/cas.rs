//! The cost of an increment by compare-and-set, beside one under a lock, with several writers of one item on one Redis.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use leasehold::blocking::Client;
use leasehold::cas::Items;
use leasehold_bench::args::Args;
use leasehold_bench::figures::median;
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;

const WRITERS: [u32; 3] = [1, 2, 8];
/// More than any update needs.
const TRIES: u32 = 10_000;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn main() -> ExitCode {
    leasehold_bench::exit_code("bench-cas", measure())
}

fn measure() -> Result {
    let args = Args::of_benchmark(&[], &["--quick"])?;
    let (rounds, increments) = if args.has("--quick") { (1, 400) } else { (9, 2_400) };
    let server = Server::start();
    println!("writers   compare-and-set   under a lock   ratio   tries for an increment");
    for writers in WRITERS {
        let (mut alone, mut locked, mut ratios, mut tries) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (cas, tried) = round(&server.url(), writers, increments, false)?;
            let (lock, _) = round(&server.url(), writers, increments, true)?;
            alone.push(cas);
            locked.push(lock);
            ratios.push(lock / cas);
            tries.push(tried);
        }
        let (cas, lock) = (median(&alone), median(&locked));
        let (ratio, tried) = (median(&ratios), median(&tries));
        println!("{writers:7}   {cas:12.3} ms   {lock:9.3} ms   {ratio:5.2}   {tried:22.2}");
        let name = if writers == 1 { "1 writer".to_owned() } else { format!("{writers} writers") };
        let case = Case(&name, "an increment of one item", "ms");
        case.in_turns(&[("compare-and-set", cas, 1.0), ("under a lock", lock, ratio)]);
        Case(&name, "tries for an increment", "1").alone(tried);
    }
    Ok(())
}

/// The milliseconds for each increment of all writers, and how often one was tried.
fn round(url: &str, writers: u32, increments: u32, is_locked: bool) -> Result<(f64, f64)> {
    let (asked, begin) = (AtomicU32::new(0), Barrier::new(writers as usize + 1));
    let each = increments / writers;
    let mut connected = Vec::new();
    for _ in 0..writers {
        let client = is_locked.then(|| Client::connect(url)).transpose()?;
        connected.push((client, Items::connect(url)?.tries(TRIES)));
    }
    let seconds = thread::scope(|scope| {
        let running: Vec<_> = connected
            .into_iter()
            .map(|(client, items)| {
                let (asked, begin) = (&asked, &begin);
                scope.spawn(move || {
                    let more = |old: Option<&[u8]>| {
                        asked.fetch_add(1, Ordering::Relaxed);
                        let count: u64 = old.map_or(0, |old| String::from_utf8_lossy(old).parse().unwrap());
                        Some((count + 1).to_string().into_bytes())
                    };
                    begin.wait();
                    for _ in 0..each {
                        let lease = client.as_ref().map(|client| client.lock("counter").acquire().unwrap());
                        items.update("counter", more).unwrap();
                        if let Some(lease) = lease {
                            lease.release().unwrap();
                        }
                    }
                })
            })
            .collect();
        begin.wait();
        let start = Instant::now();
        running.into_iter().for_each(|writer| writer.join().unwrap());
        start.elapsed().as_secs_f64()
    });
    let count = f64::from(each * writers);
    Ok((seconds * 1_000.0 / count, f64::from(asked.into_inner()) / count))
}
