//! Workers want one lock, with and without pauses: ours, other libraries, and tokens in a list, in one run.

use std::path::PathBuf;
use std::process::Command;
use std::slice;
use std::sync::mpsc::channel;
use std::time::Duration;

use leasehold_bench::child::Child;
use leasehold_bench::figures::{percentile, table};
use leasehold_bench::peers::Result;
use leasehold_bench::peers::cost::Meter;
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;

use super::Plan;
use super::contenders::{FLOOR, KEY, RUST};

const MS: Duration = Duration::from_millis(1);
/// Those who want the lock: workers in all, processes, and how long each holds it and then leaves it to others.
const CROWDS: [(&str, usize, usize, Duration, Duration); 5] = [
    ("want one lock, in one process", 8, 1, MS, PAUSE),
    ("want one lock, in 4 processes", 8, 4, MS, PAUSE),
    ("want one lock without pauses, in one process", 8, 1, Duration::ZERO, Duration::ZERO),
    ("want one lock without pauses, in 4 processes", 8, 4, Duration::ZERO, Duration::ZERO),
    ("want one lock for 1 ms without pauses, in 4 processes", 4, 4, MS, Duration::ZERO),
];
const PAUSE: Duration = Duration::from_millis(10);
/// A reply that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Libraries of other languages: the name, the variable that tells where they are installed, and the program.
const ELSEWHERE: [(&str, &str, &str); 3] = [
    ("python-redis-lock", "LEASEHOLD_LOCKS_PYTHON", "python/contend.py"),
    ("redis-semaphore", "LEASEHOLD_NODE_FOLDER", "node/contend.mjs"),
    ("redlock", "LEASEHOLD_NODE_FOLDER", "node/contend.mjs"),
];

pub fn measure(server: &Server, plan: &Plan) -> Result {
    println!("workers want one lock: they hold it for 1 ms and pause for 10 ms, or do neither, or do not pause\n");
    let heads = ["", "per s", "hand-over p50", "p99", "wait p99", "slowest's share", "Jain", "commands", "requests"];
    for (want, workers, processes, hold, pause) in CROWDS {
        let case = format!("{workers} workers {want}");
        let mut crowds = Vec::new();
        let elsewhere = ELSEWHERE.iter().filter(|(_, folder, _)| std::env::var_os(folder).is_some());
        for library in RUST.into_iter().chain(elsewhere.map(|(library, ..)| *library)) {
            let crowd = run(server, library, [workers, processes], [plan.contended, hold, pause])?;
            crowds.push((library, crowd));
        }
        let rows = crowds.iter().map(|(library, crowd)| crowd.row(library));
        let rows: Vec<_> = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows).collect();
        println!("{case}\n\n{}", table(&rows));
        tell(&case, &crowds);
    }
    println!("Most libraries poll, each at its own pace, which is left as it is.\n");
    Ok(())
}

/// The results of all workers together.
struct Crowd {
    per_s: f64,
    /// Nanoseconds, sorted.
    waits: Vec<u64>,
    /// From a release to the grant of another worker that was waiting: nanoseconds, sorted.
    handovers: Vec<u64>,
    /// The share of the slowest worker in its fair share, in per cent.
    slowest: f64,
    /// Jain's index of fairness: 1 where all have had as much.
    jain: f64,
    /// The commands that Redis counts for each lock, those inside of scripts included.
    commands: f64,
    /// The requests that Redis reads for each lock. Those of one process that come at once count as one.
    requests: f64,
}

/// One use of the lock by a worker: the instants of the wish, the grant and the release.
struct Turn {
    worker: usize,
    wanted: u64,
    granted: u64,
    released: u64,
}

impl Crowd {
    fn row(&self, name: &str) -> Vec<String> {
        let us = |times: &[u64], share| format!("{:.0} us", percentile(times, share) as f64 / 1e3);
        vec![
            name.to_owned(),
            format!("{:.0}", self.per_s),
            us(&self.handovers, 0.5),
            us(&self.handovers, 0.99),
            us(&self.waits, 0.99),
            format!("{:.0} %", self.slowest),
            format!("{:.3}", self.jain),
            format!("{:.1}", self.commands),
            format!("{:.1}", self.requests),
        ]
    }
}

/// Records the figures, as multiples of those of the floor.
fn tell(case: &str, crowds: &[(&str, Crowd)]) {
    let all = |of: &dyn Fn(&Crowd) -> f64| crowds.iter().map(|(who, crowd)| (*who, of(crowd))).collect::<Vec<_>>();
    let ms = |times: &[u64], share| percentile(times, share) as f64 / 1e6;
    Case(case, "time per lock, overall", "ms").side_by_side(&all(&|crowd| 1e3 / crowd.per_s));
    Case(case, "hand-over p50", "ms").side_by_side(&all(&|crowd| ms(&crowd.handovers, 0.5)));
    Case(case, "hand-over p99", "ms").side_by_side(&all(&|crowd| ms(&crowd.handovers, 0.99)));
    Case(case, "wait p99", "ms").side_by_side(&all(&|crowd| ms(&crowd.waits, 0.99)));
    Case(case, "commands", "1").side_by_side(&all(&|crowd| crowd.commands));
    Case(case, "requests", "1").side_by_side(&all(&|crowd| crowd.requests));
    for (who, crowd) in crowds {
        Case(case, "share of the slowest", "%").of(who, crowd.slowest);
        Case(case, "Jain index", "1").of(who, crowd.jain);
    }
}

fn run(
    server: &Server,
    library: &str,
    [workers, processes]: [usize; 2],
    [time, hold, pause]: [Duration; 3],
) -> Result<Crowd> {
    server.command(&["FLUSHALL"]);
    server.command(&["CONFIG", "RESETSTAT"]);
    if library == FLOOR {
        server.command(&["RPUSH", KEY, "token"]);
    }
    let (sender, receiver) = channel();
    let meter = Meter::start(slice::from_ref(server))?;
    let mut children = Vec::new();
    for _ in 0..processes {
        let sender = sender.clone();
        let hear = move |line: Option<&str>| {
            if let Some(line) = line {
                let _ = sender.send(line.to_owned());
            }
        };
        let numbers =
            [workers / processes].into_iter().chain([time, hold, pause].map(|time| time.as_millis() as usize));
        let words: Vec<String> =
            [server.url(), library.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect();
        children.push(start(library, &words, hear)?);
    }
    let mut turns = Vec::new();
    for worker in 0..workers {
        let line = receiver.recv_timeout(time + PATIENCE)?;
        let times: Vec<u64> = line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        turns.extend(times.chunks_exact(3).map(|times| Turn {
            worker,
            wanted: times[0],
            granted: times[1],
            released: times[2],
        }));
    }
    let cost = meter.stop()?;
    let reads = server.info("total_reads_processed").and_then(|reads| reads.parse().ok()).unwrap_or(f64::NAN);
    drop(children);
    Ok(crowd(turns, workers, time, [cost.commands as f64, reads]))
}

/// Starts a process with some of the workers.
fn start(library: &str, words: &[String], hear: impl FnMut(Option<&str>) + Send + 'static) -> Result<Child> {
    let Some((_, place, program)) = ELSEWHERE.iter().find(|(name, ..)| *name == library) else {
        let part: Vec<&str> = std::iter::once("contend").chain(words.iter().map(String::as_str)).collect();
        return Ok(Child::start(&part, hear)?);
    };
    let place = PathBuf::from(std::env::var_os(place).ok_or("it is not installed")?);
    let program = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../interop")).join(program);
    let mut command = if program.extension().is_some_and(|end| end == "py") {
        Command::new(place)
    } else {
        let mut node = Command::new("node");
        node.current_dir(place);
        node
    };
    Ok(Child::run(command.arg(program).args(words), hear)?)
}

fn crowd(mut turns: Vec<Turn>, workers: usize, time: Duration, [commands, requests]: [f64; 2]) -> Crowd {
    turns.sort_unstable_by_key(|turn| turn.granted);
    let mut waits: Vec<u64> = turns.iter().map(|turn| turn.granted.saturating_sub(turn.wanted)).collect();
    waits.sort_unstable();
    let handed_over = |pair: &&[Turn]| pair[0].worker != pair[1].worker && pair[1].wanted < pair[0].released;
    let handovers = turns.windows(2).filter(handed_over).map(|pair| pair[1].granted.saturating_sub(pair[0].released));
    let mut handovers: Vec<u64> = handovers.collect();
    handovers.sort_unstable();
    let mut shares = vec![0.0; workers];
    turns.iter().for_each(|turn| shares[turn.worker] += 1.0);
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    let locks = turns.len().max(1) as f64;
    Crowd {
        per_s: locks / time.as_secs_f64(),
        waits,
        handovers,
        slowest: shares.iter().copied().fold(f64::INFINITY, f64::min) * 100.0 * workers as f64 / locks,
        jain: sum * sum / (squares.max(1.0) * workers as f64),
        commands: commands / locks,
        requests: requests / locks,
    }
}
