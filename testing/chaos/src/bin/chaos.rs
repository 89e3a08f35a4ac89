//! Workers in three languages, real stores, and everything that can be done to them; see `leasehold_chaos::chaos`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold_bench::args::Args;
use leasehold_bench::child;
use leasehold_chaos::Result;
use leasehold_chaos::chaos::arena::Arena;
use leasehold_chaos::chaos::cast::{self, Janitor};
use leasehold_chaos::chaos::check::{Deeds, Findings};
use leasehold_chaos::chaos::run::Outcome;
use leasehold_chaos::chaos::{network, plot, report, run, worker};
use leasehold_servers::dynamodb::ACCESS_KEY_ID;

const SECONDS: f64 = 60.0;
/// An arena needs this long to be of any use.
const LEAST: Duration = Duration::from_secs(5);
/// Whatever loses updates without a lock does so in such a time.
const LONG: Duration = Duration::from_secs(60);
/// And every worker has come to everything, even where each spends most of its time stopped.
const LONG_ENOUGH_FOR_ALL: Duration = Duration::from_secs(300);
const VALUES: [&str; 5] = ["--minutes", "--seconds", "--seed", "--json", "--html"];
/// Judges the promises alone: how late a loss is told, and whether the control loses, is a matter of the machine too.
const PROMISES: &str = "--promises-only";

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == cast::JANITOR) {
        args.next().into_iter().for_each(Janitor::work);
        return ExitCode::SUCCESS;
    }
    let result = match child::part() {
        Some(part) => play(&part),
        None => chaos(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(part: &[String]) -> Result {
    match part {
        [name, task] if name == cast::WORK => worker::work(task),
        [name, words @ ..] if name == cast::LAUNCH => cast::become_command(words),
        [name, sockets @ ..] if name == network::CARRY => network::carry(sockets),
        [name] if name == network::WAIT => {
            network::wait();
            Ok(())
        }
        _ => Err(format!("there is no part {part:?}").into()),
    }
}

fn chaos() -> Result {
    let (arenas, args) = arenas()?;
    let minutes: Option<f64> = args.value("--minutes")?;
    let seconds = args.value("--seconds")?.or(minutes.map(|minutes| minutes * 60.0)).unwrap_or(SECONDS);
    let each = Duration::try_from_secs_f64(seconds / arenas.len() as f64)?.max(LEAST);
    let seed: u64 = match args.value("--seed")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 1_000_000,
    };
    let place = place()?;
    let temporary = tempfile::Builder::new().prefix("leasehold-chaos-").tempdir()?;
    let _janitor = Janitor::hire(temporary.path())?;
    // SAFETY: no other thread runs yet.
    unsafe {
        env::set_var("TMPDIR", temporary.path());
        // DynamoDB Local wants some, and does not look.
        env::set_var("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID);
        env::set_var("AWS_SECRET_ACCESS_KEY", "secret");
    }
    println!(
        "Six workers, in Rust, Python and Node, increment three counters: without a lock, with one, and past a guard.\n\
         They are stopped for 0.1 to 3 ttl and killed, as are servers, and ways to them break; {:.0} s in each of {}; seed \
         {seed}.\n",
        each.as_secs_f64(),
        arenas.iter().map(|arena| arena.name()).collect::<Vec<_>>().join(", ")
    );
    let mut results = Vec::new();
    for arena in arenas {
        let books = place.join("books").join(arena.name());
        if books.exists() {
            fs::remove_dir_all(&books)?;
        }
        let folder = temporary.path().join(arena.name());
        let outcome =
            run::run(arena, each, seed, &folder, &books).map_err(|error| format!("{}: {error}", arena.name()))?;
        let found = Findings::of(&outcome.evidence);
        println!("{}", report::story(&outcome, &found).trim_end());
        results.push((outcome, found));
    }
    println!("\n{}", report::table(&results));
    let written =
        |name: &str, default: &str| args.value::<PathBuf>(name).map(|path| path.unwrap_or(place.join(default)));
    let page = written("--html", "chaos.html")?;
    write(&page, plot::page(&results, seed))?;
    write(&written("--json", "chaos.json")?, report::json(&results, seed).to_string() + "\n")?;
    println!("drawn in {}; the books are beside it", page.display());
    verdict(&results, args.has(PROMISES))
}

/// What is in the first argument, unless that is an option.
fn arenas() -> Result<(Vec<Arena>, Args)> {
    let mut given: Vec<String> = env::args().skip(1).collect();
    let mut arenas = Vec::new();
    while let Some(name) = given.first().filter(|first| !first.starts_with('-')) {
        let Some(arena) = Arena::ALL.into_iter().find(|arena| arena.name() == name) else {
            let known = Arena::ALL.map(Arena::name).join(", ");
            return Err(format!("there is no arena {name:?}; there are {known}").into());
        };
        arenas.push(arena);
        given.remove(0);
    }
    let args = Args::parse(given, &VALUES, &[PROMISES])?;
    Ok((if arenas.is_empty() { Arena::ALL.into() } else { arenas }, args))
}

/// Beside the program: `target/chaos`.
fn place() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let target = program.parent().and_then(Path::parent).ok_or("this program lies nowhere")?;
    let place = target.join("chaos");
    fs::create_dir_all(&place)?;
    Ok(place)
}

fn write(path: &Path, text: String) -> Result {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// # Errors
/// When a promise was broken, or the run cannot tell.
fn verdict(results: &[(Outcome, Findings)], promises_only: bool) -> Result {
    let mut broken = Vec::new();
    for (outcome, found) in results {
        let doubtful = if promises_only { Vec::new() } else { found.doubtful() };
        broken
            .extend(found.broken().into_iter().chain(doubtful).map(|what| format!("{}: {what}", outcome.arena.name())));
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

/// What a run has not tried, and so says nothing about, in words.
fn blind(results: &[(Outcome, Findings)]) -> Vec<String> {
    let lasted = |outcome: &Outcome| Duration::from_nanos(outcome.span.1 - outcome.span.0);
    if results.iter().all(|(_, found)| found.is_blind()) {
        return vec!["without a lock nothing was lost, so this run would not have seen it: try for longer".to_owned()];
    }
    let is_blind = |(outcome, found): &&(Outcome, Findings)| found.is_blind() && lasted(outcome) >= LONG;
    let mut blind: Vec<String> = results
        .iter()
        .filter(is_blind)
        .map(|(outcome, _)| format!("{}: without a lock nothing was lost", outcome.arena.name()))
        .collect();
    if results.iter().map(|(outcome, _)| lasted(outcome)).sum::<Duration>() < LONG_ENOUGH_FOR_ALL {
        return blind;
    }
    let mut deeds: BTreeMap<&str, Deeds> = BTreeMap::new();
    for (worker, done) in results.iter().flat_map(|(_, found)| &found.deeds) {
        *deeds.entry(worker).or_default() += *done;
    }
    let missing = deeds.iter().filter_map(|(worker, done)| done.missing().map(|what| (worker, what)));
    blind.extend(missing.map(|(worker, what)| format!("{worker} came to no {what}: nothing is shown of it")));
    blind
}
