//! Torture of locks in a SQLite file. Three modes take turns: no lock, a lock, a lock with a guard.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold_bench::args::Args;
use leasehold_bench::child;
use leasehold_bench::torture::{self, Lock, Mode, Report, Result};

const TTL: Duration = Duration::from_millis(300);
const PROCESSES: usize = 8;
const SECONDS: u64 = 60;

fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => torture::work(&part),
        None => torture(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torture() -> Result {
    let args = Args::parse(std::env::args().skip(1), &["--seconds", "--seed", "--processes"], &["--json"])?;
    let seconds: u64 = args.value("--seconds")?.unwrap_or(SECONDS).max(3);
    let processes: usize = args.value("--processes")?.unwrap_or(PROCESSES).max(2);
    let seed: u64 = match args.value("--seed")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() % 1_000_000,
    };
    let each = Duration::from_secs(seconds) / 3;
    let run = |mode| {
        let dir = tempfile::Builder::new().prefix("leasehold-chaos-").tempdir()?;
        let url = format!("sqlite:{}", dir.path().join("locks.db").display());
        let lock = Lock { urls: vec![url], ttl: TTL, max_ttl: None };
        Ok::<_, Box<dyn std::error::Error>>((mode, torture::run(mode, &lock, processes, each, seed)?))
    };
    if !args.has("--json") {
        println!(
            "{processes} processes increment one number in a SQLite file, {:.1} s in each mode; seed {seed}\n\
             Each is stopped (SIGSTOP) for 0.1 to 3 ttl or killed (SIGKILL), again and again; a lease lasts {} ms.\n",
            each.as_secs_f64(),
            TTL.as_millis()
        );
    }
    let [bare, locked, guarded] = Mode::ALL.map(run);
    let reports = [bare?, locked?, guarded?];
    if args.has("--json") {
        println!(
            "{{\"seed\":{seed},\"processes\":{processes},\"seconds_per_mode\":{},\"ttl_ms\":{},{}}}",
            each.as_secs_f64(),
            TTL.as_millis(),
            torture::json(&reports)
        );
    } else {
        print!("{}", torture::table(&reports));
    }
    verdict(&reports, !args.has("--json"))
}

/// # Errors
/// When the guard did not keep its promise, or had no chance to.
fn verdict(reports: &[(Mode, Report)], aloud: bool) -> Result {
    for (mode, report) in reports {
        match mode {
            Mode::Bare if aloud && report.lost() == 0 => {
                println!("\nWithout a lock nothing was lost: try again for longer.");
            }
            Mode::Locked if aloud && report.lost() == 0 => {
                println!("\nWith the lock alone nothing was lost this time; it can happen, and the guard is why not.");
            }
            Mode::Guarded => {
                let broken = report.broken();
                if !broken.is_empty() {
                    return Err(format!("with lock and guard {}", broken.join(", and ")).into());
                }
            }
            Mode::Bare | Mode::Locked => {}
        }
    }
    if aloud {
        println!("\nWith lock and guard nothing was lost.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_without_a_lock_are_wanted_but_those_with_a_guard_are_not() {
        let empty = || Report::default();
        assert!(verdict(&[(Mode::Bare, empty()), (Mode::Locked, empty())], false).is_ok());
        assert!(verdict(&[(Mode::Guarded, empty())], false).is_err(), "it wrote nothing");
    }
}
