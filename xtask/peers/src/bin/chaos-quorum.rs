//! Torture of a quorum of five Redis servers: while processes increment a guarded number and are stopped and killed,
//! so are the servers, a minority at a time.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold::ClientBuilder;
use leasehold::blocking::Client;
use leasehold_bench::args::Args;
use leasehold_bench::chance::Chance;
use leasehold_bench::child;
use leasehold_bench::torture::{self, Lock, Mode};
use leasehold_peers::Result;
use leasehold_rig::redis::{Data, Server};

const NODES: usize = 5;
/// Who may be away at the same time, so that the others can grant.
const MINORITY: usize = 2;
const TTL: Duration = Duration::from_millis(600);
const MAX_TTL: Duration = Duration::from_millis(1_000);
/// A server that has lost its data abstains for `max_ttl`, the clocks' margins, and a second; then it is of use again.
const ABSTENTION: Duration = Duration::from_millis(2_100);
const PROCESSES: usize = 8;
const SECONDS: u64 = 60;
/// Between two blows at servers.
const CALM: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(1_000)];
/// A server is away this long.
const AWAY: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(1_500)];

fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => torture::work(&part),
        None => torture(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos-quorum: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torture() -> Result {
    let args = Args::parse(std::env::args().skip(1), &["--seconds", "--seed"], &[])?;
    let time = Duration::from_secs(args.value("--seconds")?.unwrap_or(SECONDS).max(3));
    let seed: u64 = match args.value("--seed")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 1_000_000,
    };
    let start = |node| if is_durable(node) { Server::builder().appendonly().start() } else { Server::start() };
    let servers: Vec<Server> = (0..NODES).map(start).collect();
    let url = |(node, server): (usize, &Server)| server.url() + if is_durable(node) { "?durable=yes" } else { "" };
    let urls: Vec<String> = servers.iter().enumerate().map(url).collect();
    Client::connect_with(ClientBuilder::default().max_ttl(MAX_TTL).create_quorum(), urls.as_slice())?;
    println!(
        "{PROCESSES} processes increment one guarded number for {} s; the lock is a quorum of {NODES} Redis servers; seed \
         {seed}\nProcesses are stopped and killed, and so are servers, at most {MINORITY} at a time; a lease lasts {} ms.\n",
        time.as_secs(),
        TTL.as_millis()
    );
    let lock = Lock { urls, ttl: TTL, max_ttl: Some(MAX_TTL) };
    let over = AtomicBool::new(false);
    let (report, blows) = thread::scope(|scope| {
        let villain = scope.spawn(|| strike(&servers, &mut Chance::new(seed, 77), &over));
        let report = torture::run(Mode::Guarded, &lock, PROCESSES, time, seed).map_err(|error| error.to_string());
        over.store(true, Ordering::SeqCst);
        (report, villain.join())
    });
    let blows = blows.map_err(|_| "a server could not be stopped or started")?;
    let report = report?;
    let broken = report.broken();
    print!("{}", torture::table(&[(Mode::Guarded, report)]));
    println!(
        "servers killed and started empty {}, killed and started with their data {}, stopped {}",
        blows.emptied, blows.restarted, blows.stopped
    );
    if blows.emptied * blows.restarted * blows.stopped == 0 {
        return Err("too short: not every kind of blow was struck".into());
    }
    if !broken.is_empty() {
        return Err(broken.join(", and ").into());
    }
    println!("\nNothing was lost.");
    Ok(())
}

/// Two write everything down before they answer, so that they come back with what they knew.
fn is_durable(node: usize) -> bool {
    node < 2
}

#[derive(Default)]
struct Blows {
    emptied: u32,
    restarted: u32,
    stopped: u32,
}

/// What a server that is away comes back by.
#[derive(Clone, Copy, PartialEq)]
enum Return {
    Empty,
    WithData,
    GoesOn,
}

fn strike(servers: &[Server], chance: &mut Chance, over: &AtomicBool) -> Blows {
    let mut blows = Blows::default();
    let mut away: Vec<(usize, Return, Instant)> = Vec::new();
    // By node: from when on it counts again.
    let mut counts_from = [Instant::now(); NODES];
    let mut next = Instant::now();
    while !over.load(Ordering::SeqCst) {
        let now = Instant::now();
        away.retain(|&(node, by, back)| {
            if now < back {
                return true;
            }
            match by {
                Return::Empty => {
                    servers[node].restart(Data::Lost);
                    counts_from[node] = Instant::now() + ABSTENTION;
                }
                Return::WithData => servers[node].restart(Data::Kept),
                Return::GoesOn => servers[node].continue_process(),
            }
            false
        });
        let is_away = |node: usize| away.iter().any(|(gone, ..)| *gone == node);
        let missing = (0..NODES).filter(|node| is_away(*node) || counts_from[*node] > now).count();
        if now >= next && missing < MINORITY {
            let node = (chance.draw() % NODES as u64) as usize;
            if !is_away(node) && counts_from[node] <= now {
                let by = match chance.draw() % 3 {
                    0 => Return::GoesOn,
                    _ if is_durable(node) => Return::WithData,
                    _ => Return::Empty,
                };
                match by {
                    Return::Empty => blows.emptied += 1,
                    Return::WithData => blows.restarted += 1,
                    Return::GoesOn => blows.stopped += 1,
                }
                if by == Return::GoesOn {
                    servers[node].stop_process()
                } else {
                    servers[node].kill()
                }
                away.push((node, by, now + chance.between(AWAY[0], AWAY[1])));
                next = now + chance.between(CALM[0], CALM[1]);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    blows
}
