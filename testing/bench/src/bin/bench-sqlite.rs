//! The cost of leasehold on SQLite, compared with a bare loop of the same transactions.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_bench::args::Args;
use leasehold_bench::bare::Bare;
use leasehold_bench::child::{self, Child};
use leasehold_bench::figures::{median, percentile, table};
use leasehold_bench::records::{self, Case};
use leasehold_bench::{build, database};
use rustix::time::{ClockId, clock_gettime};

const PROCESSES: usize = 8;
/// A reply that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_secs(60);
const HELD: usize = 1_000;
const HELD_TTL: Duration = Duration::from_secs(3);

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => work(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => measure(),
    };
    leasehold_bench::exit_code("bench-sqlite", result)
}

/// The lengths of all parts.
struct Plan {
    rounds: usize,
    round: Duration,
    contended_rounds: usize,
    calls: u32,
    hold: Duration,
}

impl Plan {
    const FULL: Self = Self {
        rounds: 11,
        round: Duration::from_secs(1),
        contended_rounds: 7,
        calls: 2_000_000,
        hold: Duration::from_secs(10),
    };
    const QUICK: Self = Self {
        rounds: 5,
        round: Duration::from_millis(200),
        contended_rounds: 5,
        calls: 200_000,
        hold: Duration::from_millis(2_500),
    };
}

fn measure() -> Result {
    let args = Args::parse(std::env::args().skip(1), &[], &["--quick"])?;
    let plan = if args.has("--quick") { Plan::QUICK } else { Plan::FULL };
    let dir = tempfile::Builder::new().prefix("leasehold-bench-").tempdir()?;
    println!("{}", surroundings(dir.path())?);
    records::version("SQLite", rusqlite::version());

    println!("Acquire and release in one file, beside a bare loop of the same two transactions, in turns\n");
    compare(dir.path(), "1 process", 1, false, plan.rounds, plan.round)?;
    compare(dir.path(), "8 processes with a lock each", PROCESSES, false, plan.rounds, plan.round)?;
    compare(dir.path(), "8 processes want one lock", PROCESSES, true, plan.contended_rounds, plan.round)?;
    println!(
        "ratio: bare per s by leasehold per s, the median of pairs of rounds; share: what the slowest process got of \
         its fair share.\nWhere all want one lock, the bare loop looks again after 100 to 500 us, as often as it takes; \
         leasehold backs off, up to 2 s.\n"
    );
    look(dir.path(), plan.calls)?;
    hold(dir.path(), plan.hold)
}

fn surroundings(folder: &Path) -> Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let cores = std::thread::available_parallelism()?;
    let system = rustix::system::uname();
    Ok(format!(
        "machine    {}, {cores} cores, {} {}\n\
         disk       writing 4 KiB and waiting for it (fdatasync): {:.0} us, median, in {}\n\
         versions   leasehold {}, SQLite {}\n\
         build      {}\n",
        model.trim_start_matches([' ', '\t', ':']),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        sync_us(folder)?,
        folder.parent().unwrap_or(folder).display(),
        env!("CARGO_PKG_VERSION"),
        rusqlite::version(),
        build()
    ))
}

fn sync_us(folder: &Path) -> Result<f64> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    Ok(median(&times))
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

// Acquire and release.

/// The results of one side: the times of all pairs, by process, and the rate of each round.
#[derive(Default)]
struct Score {
    rates: Vec<f64>,
    /// The medians, in microseconds.
    medians: Vec<f64>,
    pairs: Vec<u64>,
    ns: Vec<u64>,
    cpu_us: u64,
}

/// The results of one process in one round.
struct Turn {
    cpu_us: u64,
    ns: Vec<u64>,
}

impl Score {
    fn add(&mut self, round: &[Turn], length: Duration) {
        self.pairs.resize(round.len(), 0);
        let mut together: Vec<u64> = round.iter().flat_map(|turn| &turn.ns).copied().collect();
        together.sort_unstable();
        self.medians.push(percentile(&together, 0.5) as f64 / 1e3);
        for (total, turn) in self.pairs.iter_mut().zip(round) {
            *total += turn.ns.len() as u64;
            self.ns.extend(&turn.ns);
            self.cpu_us += turn.cpu_us;
        }
        self.rates.push(round.iter().map(|turn| turn.ns.len()).sum::<usize>() as f64 / length.as_secs_f64());
    }

    fn us(&self, share: f64) -> f64 {
        percentile(&self.ns, share) as f64 / 1e3
    }

    fn cpu_us(&self) -> f64 {
        self.cpu_us as f64 / self.pairs.iter().sum::<u64>() as f64
    }

    fn row(&self, name: &str, ratio: [String; 2]) -> Vec<String> {
        let us = |share| format!("{:.0}", self.us(share));
        let all = self.pairs.iter().sum::<u64>() as f64;
        let fair = all / self.pairs.len() as f64;
        let slowest = self.pairs.iter().min().copied().unwrap_or(0) as f64 / fair;
        let [ratio, range] = ratio;
        vec![
            name.to_owned(),
            format!("{:.0}", median(&self.rates)),
            us(0.5),
            us(0.99),
            format!("{:.0}", self.cpu_us()),
            ratio,
            range,
            if self.pairs.len() > 1 { format!("{:.0}%", slowest * 100.0) } else { "-".to_owned() },
        ]
    }
}

/// Runs both sides in turns, so that other load on the machine affects both.
fn compare(folder: &Path, name: &str, processes: usize, contended: bool, rounds: usize, length: Duration) -> Result {
    let mut leasehold = Team::start(folder, "leasehold", processes, contended)?;
    let mut bare = Team::start(folder, "bare", processes, contended)?;
    let warm_up = length / 4;
    leasehold.round(warm_up)?;
    bare.round(warm_up)?;
    let mut scores = [Score::default(), Score::default()];
    for _ in 0..rounds {
        scores[0].add(&leasehold.round(length)?, length);
        scores[1].add(&bare.round(length)?, length);
    }
    let ratios: Vec<f64> = scores[0].rates.iter().zip(&scores[1].rates).map(|(ours, bare)| bare / ours).collect();
    let (least, most) =
        ratios.iter().fold((f64::MAX, f64::MIN), |(least, most), &ratio| (least.min(ratio), most.max(ratio)));
    scores.iter_mut().for_each(|score| score.ns.sort_unstable());
    let [ours, bare] = scores;
    let both = |of: &dyn Fn(&Score) -> f64| [("bare loop", of(&bare)), ("leasehold", of(&ours))];
    let [(base, base_each), (us, each)] = both(&|score| 1e6 / median(&score.rates));
    Case(name, "time per pair, overall", "us").in_turns(&[(base, base_each, 1.0), (us, each, median(&ratios))]);
    let slower: Vec<f64> = ours.medians.iter().zip(&bare.medians).map(|(ours, bare)| ours / bare).collect();
    Case(name, "p50", "us").in_turns(&[(base, bare.us(0.5), 1.0), (us, ours.us(0.5), median(&slower))]);
    Case(name, "p99", "us").side_by_side(&both(&|score| score.us(0.99)));
    Case(name, "CPU", "us").side_by_side(&both(&Score::cpu_us));
    let ratio = [format!("{:.2}", median(&ratios)), format!("{least:.2} to {most:.2}")];
    let rows = [
        head(&[name, "per s", "p50 us", "p99 us", "CPU us", "ratio", "range", "share"]),
        ours.row("  leasehold", ratio),
        bare.row("  bare", [String::new(), String::new()]),
    ];
    println!("{}", table(&rows));
    Ok(())
}

/// Processes that do the same.
struct Team {
    children: Vec<Child>,
    news: Receiver<(usize, Option<String>)>,
}

impl Team {
    fn start(folder: &Path, kind: &str, processes: usize, contended: bool) -> Result<Self> {
        let path = folder.join(format!("{kind}-{processes}-{contended}.db"));
        let path = text(&path)?;
        // Both sides have the same tables, since leasehold makes them.
        Client::connect(store(path))?.close()?;
        let (voice, news) = channel();
        let mut children = Vec::new();
        for number in 0..processes {
            let resource = if contended { "invoice/0".to_owned() } else { format!("invoice/{number}") };
            let voice = voice.clone();
            children.push(Child::start(&[kind, path, &resource], move |line| {
                // Fails when the figures are in; then no one needs it.
                let _ = voice.send((number, line.map(str::to_owned)));
            })?);
        }
        let mut team = Self { children, news };
        team.answers()?;
        Ok(team)
    }

    /// Everybody runs for that long.
    fn round(&mut self, length: Duration) -> Result<Vec<Turn>> {
        for child in &mut self.children {
            child.tell(&length.as_millis().to_string());
        }
        let turn = |line: &String| {
            let mut ns = numbers(line)?;
            Ok(Turn { cpu_us: ns.remove(0), ns })
        };
        self.answers()?.iter().map(turn).collect()
    }

    fn answers(&mut self) -> Result<Vec<String>> {
        let mut answers = vec![String::new(); self.children.len()];
        for _ in 0..self.children.len() {
            match self.news.recv_timeout(PATIENCE) {
                Ok((number, Some(line))) => answers[number] = line,
                Ok((number, None)) => return Err(format!("process {number} has failed").into()),
                Err(_) => return Err(format!("a process has not answered within {PATIENCE:?}").into()),
            }
        }
        Ok(answers)
    }
}

fn numbers(line: &str) -> Result<Vec<u64>> {
    Ok(line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?)
}

// Looking at a lease.

fn look(folder: &Path, calls: u32) -> Result {
    let client = Client::connect(store(text(&folder.join("look.db"))?))?;
    let lease = client.lock("invoice/42").acquire()?;
    let remaining = time("lease.remaining()", calls, || black_box(&lease).remaining());
    let check = time("lease.check(1 s)", calls, || black_box(&lease).check(Duration::from_secs(1)));
    lease.check(Duration::from_secs(1))?;
    println!("lease.remaining()  {remaining}\nlease.check(1 s)   {check}\n");
    Ok(())
}

/// The time of a call that is too short to be timed alone.
fn time<R>(name: &str, calls: u32, call: impl Fn() -> R) -> String {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    let rounds: Vec<f64> = (0..11).map(round).collect();
    let fastest = rounds.iter().copied().fold(f64::MAX, f64::min);
    Case(name, "time", "ns").alone(median(&rounds));
    format!("{:.0} ns, fastest round {fastest:.0} ns", median(&rounds))
}

// Holding many.

fn hold(folder: &Path, length: Duration) -> Result {
    let path = folder.join("hold.db");
    let path = text(&path)?;
    let (voice, news) = channel();
    let child = Child::start(&["hold", path, &length.as_millis().to_string()], move |line| {
        let _ = voice.send((0, line.map(str::to_owned)));
    })?;
    let mut team = Team { children: vec![child], news };
    let held = numbers(&team.answers()?[0])?;
    let before = sends(path)?;
    team.children[0].tell("go");
    let end = numbers(&team.answers()?[0])?;
    let renewals = sends(path)? - before;
    let (&[took_us, rss_kib, empty_kib], &[cpu_us, peak_kib, lost]) = (&held[..], &end[..]) else {
        return Err("the holder gave no figures".into());
    };
    if lost > 0 {
        return Err(format!("{lost} of {HELD} leases were lost").into());
    }
    let seconds = length.as_secs_f64();
    let kib_each = (rss_kib - empty_kib.min(rss_kib)) as f64 / HELD as f64;
    let case = format!("{HELD} leases in one process");
    Case(&case, "memory of each", "KiB").alone(kib_each);
    Case(&case, "CPU of a renewal", "us").alone(cpu_us as f64 / renewals as f64);
    println!(
        "{HELD} leases of {} s in one process, held for {seconds} s: none lost\n  \
         acquired in {:.2} s, {:.0} us each\n  \
         memory: {:.1} MiB at most, {:.1} MiB before the first; {:.1} KiB for each lease\n  \
         {renewals} renewals, {:.0} per s; {:.0} ms of CPU time, {:.1} us for each",
        HELD_TTL.as_secs(),
        took_us as f64 / 1e6,
        took_us as f64 / HELD as f64,
        peak_kib as f64 / 1024.0,
        empty_kib as f64 / 1024.0,
        kib_each,
        renewals as f64 / seconds,
        cpu_us as f64 / 1e3,
        cpu_us as f64 / renewals as f64
    );
    Ok(())
}

/// Sends of all leases so far: each renewal counts its record's `seq` up.
fn sends(path: &str) -> Result<i64> {
    Ok(database::open(Path::new(path))?.query_row("SELECT sum(seq) FROM leases", [], |row| row.get(0))?)
}

// The workers.

fn text(path: &Path) -> Result<&str> {
    Ok(path.to_str().ok_or("the temporary folder has no readable name")?)
}

fn store(path: &str) -> String {
    format!("sqlite:{path}")
}

fn work(part: &[&str]) -> Result {
    match *part {
        ["leasehold", path, resource] => {
            let client = Client::connect(store(path))?;
            rounds(|left| match client.lock(resource).wait(left).acquire() {
                Ok(lease) => Ok(lease.release().map(|()| true)?),
                Err(error) if error.kind() == ErrorKind::TimedOut => Ok(false),
                Err(error) => Err(error.into()),
            })
        }
        ["bare", path, resource] => {
            let mut bare = Bare::open(Path::new(path), resource)?;
            rounds(|left| {
                let taken = bare.acquire(left)?;
                if taken {
                    bare.release()?;
                }
                Ok(taken)
            })
        }
        ["hold", path, length] => holder(path, Duration::from_millis(length.parse()?)),
        _ => Err(format!("there is no part {part:?}").into()),
    }
}

/// Does pairs for as long as each line says, and answers the CPU time of all and how long each of them took.
fn rounds(mut pair: impl FnMut(Duration) -> Result<bool>) -> Result {
    child::say("ready");
    loop {
        let length = Duration::from_millis(child::listen().parse()?);
        let (begin, cpu) = (Instant::now(), cpu_us());
        let mut times = String::new();
        loop {
            let start = Instant::now();
            let left = length.saturating_sub(start - begin);
            if left.is_zero() || !pair(left)? {
                break;
            }
            times.push_str(&format!(" {}", start.elapsed().as_nanos()));
        }
        child::say(&format!("{}{times}", cpu_us() - cpu));
    }
}

fn holder(path: &str, length: Duration) -> Result {
    let client = Client::connect(store(path))?;
    // This opens its connections and starts its threads.
    client.lock("first").acquire()?.release()?;
    let empty = memory("VmRSS")?;
    let begin = Instant::now();
    let leases = (0..HELD)
        .map(|number| client.lock(format!("invoice/{number}")).ttl(HELD_TTL).acquire())
        .collect::<std::result::Result<Vec<_>, _>>()?;
    child::say(&format!("{} {} {empty}", begin.elapsed().as_micros(), memory("VmRSS")?));
    child::listen();
    let begin = cpu_us();
    std::thread::sleep(length);
    let spent = cpu_us() - begin;
    let lost = leases.iter().filter(|lease| lease.is_lost()).count();
    child::say(&format!("{spent} {} {lost}", memory("VmHWM")?));
    child::listen();
    Ok(())
}

/// A figure of this process, in KiB.
fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.split_whitespace().next());
    Ok(value.ok_or("the system does not tell how much memory is used")?.parse()?)
}

fn cpu_us() -> i64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec * 1_000_000 + spent.tv_nsec / 1_000
}
