//! The program behind `cargo xtask chaos`; see `leasehold_chaos::chaos`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold_bench::args::Args;
use leasehold_bench::child;
use leasehold_chaos::Result;
use leasehold_chaos::chaos::check::{Activity, Findings};
use leasehold_chaos::chaos::environment::StoreKind;
use leasehold_chaos::chaos::run::Outcome;
use leasehold_chaos::chaos::workers::{self, Janitor};
use leasehold_chaos::chaos::{network, plot, report, run, worker};
use leasehold_chaos::{cron, http, permits, sessions, shards, upgrade};
use leasehold_servers::dynamodb::ACCESS_KEY_ID;
use leasehold_servers::objects::AZURE_KEY;

const SECONDS: f64 = 60.0;
/// The shortest useful run of one store.
const LEAST: Duration = Duration::from_secs(5);
/// The time in which the control must lose an update.
const LONG: Duration = Duration::from_secs(60);
/// The time in which every worker must have been granted the lock, renewed a lease and written, even on a slow machine.
const LONG_ENOUGH_FOR_ALL: Duration = Duration::from_secs(300);
const VALUES: [&str; 5] = ["--minutes", "--seconds", "--seed", "--json", "--html"];
/// The first word for the other play, and its options.
const CRON: &str = "cron";
const VALUES_OF_CRON: [&str; 2] = ["--keys", "--seed"];
const SLOTS: u64 = 200;
/// The first word for the third play.
const SEMAPHORE: &str = "permits";
/// The first word for the fourth play.
const SHARDS: &str = "shards";
/// The first word for the fifth play.
const SESSIONS: &str = "sessions";
/// The options of the third, the fourth and the fifth.
const VALUES_OF_PERMITS: [&str; 3] = ["--minutes", "--seconds", "--seed"];
/// The option that checks the promises only. Late reports, and a control that loses nothing, may be the machine's
/// fault.
const PROMISES: &str = "--promises-only";
/// The first word for the sixth play, and its options.
const HTTP: &str = "http";
const VALUES_OF_HTTP: [&str; 2] = ["--requests", "--seed"];
const REQUESTS: u64 = 1_000;
/// The first word for the seventh play, and its options: the commands of two versions.
const UPGRADE: &str = "upgrade";
const VALUES_OF_UPGRADE: [&str; 2] = ["--older", "--newer"];
const PLAYS: [&str; 6] = [CRON, SEMAPHORE, SHARDS, SESSIONS, HTTP, UPGRADE];

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == workers::JANITOR) {
        args.next().into_iter().for_each(Janitor::work);
        return ExitCode::SUCCESS;
    }
    let result = match child::part() {
        Some(part) => play(&part),
        None => chaos(),
    };
    leasehold_bench::exit_code("chaos", result)
}

fn play(part: &[String]) -> Result {
    match part {
        [name, task] if name == workers::WORK => worker::work(task),
        [name, task] if name == cron::MACHINE => cron::work(task),
        [name, task] if name == permits::WORKER => permits::work(task),
        [name, task] if name == shards::WORKER => shards::work(task),
        [name, task] if name == sessions::WORKER => sessions::work(task),
        [name, task] if name == sessions::BREAKER => sessions::break_locks(task),
        [name, task] if name == sessions::HEIR => sessions::inherit(task),
        [name, words @ ..] if name == workers::LAUNCH => workers::become_command(words),
        [name, sockets @ ..] if name == network::CARRY => network::carry(sockets),
        [name] if name == network::WAIT => {
            network::wait();
            Ok(())
        }
        _ => Err(format!("there is no part {part:?} of this program").into()),
    }
}

fn chaos() -> Result {
    let mut given: Vec<String> = env::args().skip(1).collect();
    let play = given.first().filter(|first| PLAYS.contains(&first.as_str())).cloned();
    if play.is_some() {
        given.remove(0);
    }
    let play = play.as_deref();
    let (all, values, flags): (&[StoreKind], &[&str], &[&str]) = match play {
        Some(CRON) => (&StoreKind::USUAL, &VALUES_OF_CRON, &[]),
        Some(SEMAPHORE) => (&permits::STORES, &VALUES_OF_PERMITS, &[]),
        Some(SHARDS) => (&shards::STORES, &VALUES_OF_PERMITS, &[]),
        Some(SESSIONS) => (&sessions::STORES, &VALUES_OF_PERMITS, &[]),
        Some(HTTP) => (&http::STORES, &VALUES_OF_HTTP, &[]),
        Some(UPGRADE) => (&upgrade::STORES, &VALUES_OF_UPGRADE, &[]),
        _ => (&StoreKind::USUAL, &VALUES, &[PROMISES]),
    };
    let stores = stores(&mut given, all)?;
    let args = Args::parse(given, values, flags)?;
    let minutes: Option<f64> = args.value("--minutes")?;
    let seconds = args.value("--seconds")?.or(minutes.map(|minutes| minutes * 60.0)).unwrap_or(SECONDS);
    // Sessions are played on all stores at once.
    let turns = if play == Some(SESSIONS) { 1 } else { stores.len() };
    let each = Duration::try_from_secs_f64(seconds / turns as f64)?.max(LEAST);
    let seed: u64 = match args.value("--seed")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 1_000_000,
    };
    let output = output()?;
    let temporary = tempfile::Builder::new().prefix("leasehold-chaos-").tempdir()?;
    let _janitor = Janitor::start(temporary.path())?;
    // SAFETY: no other thread runs yet.
    unsafe {
        env::set_var("TMPDIR", temporary.path());
        // DynamoDB Local wants some, and does not look.
        env::set_var("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID);
        env::set_var("AWS_SECRET_ACCESS_KEY", "secret");
        env::set_var("AZURE_STORAGE_KEY", AZURE_KEY);
    }
    match play {
        Some(CRON) => {
            return cron::show(&stores, args.value("--keys")?.unwrap_or(SLOTS), seed, temporary.path());
        }
        Some(HTTP) => {
            return http::show(&stores, args.value("--requests")?.unwrap_or(REQUESTS), seed, temporary.path());
        }
        Some(UPGRADE) => {
            let command = |name: &str| args.value::<PathBuf>(name)?.ok_or(format!("{name} is missing"));
            return upgrade::show(&stores, command("--older")?, command("--newer")?, temporary.path());
        }
        Some(SEMAPHORE) => return permits::show(&stores, each, seed, temporary.path()),
        Some(SHARDS) => return shards::show(&stores, each, seed, temporary.path()),
        Some(SESSIONS) => return sessions::show(&stores, each, seed, temporary.path(), &output.join("sessions")),
        _ => {}
    }
    println!(
        "Two workers in each of Rust, Python, Node and, on Redis, Go increment three counters: without a lock, with one, and past a guard.\n\
         They are stopped for 0.1 to 3 ttl and killed, as are servers, and ways to them break; {:.0} s in each of {}; seed \
         {seed}.\n",
        each.as_secs_f64(),
        stores.iter().map(|store| store.name()).collect::<Vec<_>>().join(", ")
    );
    let mut results = Vec::new();
    for store in stores {
        let journals = output.join("journals").join(store.name());
        if journals.exists() {
            fs::remove_dir_all(&journals)?;
        }
        let folder = temporary.path().join(store.name());
        let outcome =
            run::run(store, each, seed, &folder, &journals).map_err(|error| format!("{}: {error}", store.name()))?;
        let found = Findings::of(&outcome.evidence);
        println!("{}", report::details(&outcome, &found).trim_end());
        results.push((outcome, found));
    }
    println!("\n{}", report::table(&results));
    let written =
        |name: &str, default: &str| args.value::<PathBuf>(name).map(|path| path.unwrap_or(output.join(default)));
    let page = written("--html", "chaos.html")?;
    write(&page, plot::page(&results, seed))?;
    write(&written("--json", "chaos.json")?, report::json(&results, seed).to_string() + "\n")?;
    println!("drawn in {}; the journals are beside it", page.display());
    verdict(&results, args.has(PROMISES))
}

/// Takes the stores that the first arguments name, or all of these.
fn stores(given: &mut Vec<String>, all: &[StoreKind]) -> Result<Vec<StoreKind>> {
    let mut stores = Vec::new();
    while let Some(name) = given.first().filter(|first| !first.starts_with('-')) {
        let Some(store) = StoreKind::ALL.into_iter().find(|store| store.name() == name) else {
            let known = StoreKind::ALL.map(StoreKind::name).join(", ");
            return Err(format!("there is no store {name:?}; there are {known}").into());
        };
        stores.push(store);
        given.remove(0);
    }
    Ok(if stores.is_empty() { all.into() } else { stores })
}

/// The folder for results, beside the program: `target/chaos`.
fn output() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let target = program.parent().and_then(Path::parent).ok_or("this program lies nowhere")?;
    let output = target.join("chaos");
    fs::create_dir_all(&output)?;
    Ok(output)
}

fn write(path: &Path, text: String) -> Result {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// # Errors
/// When a promise was broken, or the run proves nothing.
fn verdict(results: &[(Outcome, Findings)], promises_only: bool) -> Result {
    let mut broken = Vec::new();
    for (outcome, found) in results {
        let doubtful = if promises_only { Vec::new() } else { found.doubtful() };
        broken
            .extend(found.broken().into_iter().chain(doubtful).map(|what| format!("{}: {what}", outcome.store.name())));
    }
    if !promises_only {
        broken.extend(blind(results));
    }
    if broken.is_empty() {
        println!("\nEvery promise was kept.");
        return Ok(());
    }
    Err(broken.join("\n       ").into())
}

/// The things that a run has not tried and so does not prove, in words.
fn blind(results: &[(Outcome, Findings)]) -> Vec<String> {
    let lasted = |outcome: &Outcome| Duration::from_nanos(outcome.span.1 - outcome.span.0);
    if results.iter().all(|(_, found)| found.is_blind()) {
        return vec![
            "no update was lost without a lock, so this run would not have noticed lost updates: run it for longer"
                .to_owned(),
        ];
    }
    let is_blind = |(outcome, found): &&(Outcome, Findings)| found.is_blind() && lasted(outcome) >= LONG;
    let mut blind: Vec<String> = results
        .iter()
        .filter(is_blind)
        .map(|(outcome, _)| format!("{}: no update was lost without a lock", outcome.store.name()))
        .collect();
    if results.iter().map(|(outcome, _)| lasted(outcome)).sum::<Duration>() < LONG_ENOUGH_FOR_ALL {
        return blind;
    }
    let mut activity: BTreeMap<&str, Activity> = BTreeMap::new();
    for (worker, done) in results.iter().flat_map(|(_, found)| &found.activity) {
        *activity.entry(worker).or_default() += *done;
    }
    let missing = activity.iter().filter_map(|(worker, done)| done.missing().map(|what| (worker, what)));
    blind.extend(missing.map(|(worker, what)| format!("{worker} had no {what}, so the run proves nothing about it")));
    blind
}
