//! `cargo xtask fuzz`: libFuzzer on all that comes from outside, built for it with the stable toolchain.

mod build;
mod report;

use crate::run::{self, Failure, Result};
use crate::setup;
use crate::steps::Steps;
use report::Report;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

const FOLDER: &str = "testing/fuzz";
/// In seconds for each target: where nothing else is asked for, and before a release.
const SHORT: u32 = 15;
const LONG: u32 = 600;
/// No input takes longer, in seconds on a machine that is busy with other things, and no program more memory, in MiB.
const LIMITS: [&str; 3] = ["-timeout=30", "-rss_limit_mb=768", "-max_len=4096"];
/// The most that is kept of one target, in bytes, beside inputs that were added by hand.
const MOST_KEPT: u64 = 12 << 10;

struct Wish {
    targets: Vec<String>,
    seconds: u32,
    keep: bool,
}

pub fn fuzz(args: &[String]) -> Result {
    let all = targets()?;
    let mut wish = Wish { targets: Vec::new(), seconds: SHORT, keep: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => {
                all.iter().for_each(|name| println!("{name}"));
                return Ok(());
            }
            "--keep" => wish.keep = true,
            "--seconds" => {
                let seconds = args.next().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
                wish.seconds = seconds.ok_or_else(|| Failure::new("--seconds is followed by a number above 0"))?;
            }
            name if all.iter().any(|known| known == name) => wish.targets.push(name.to_owned()),
            other => {
                let known = all.join(", ");
                return Err(Failure::new(format!("there is no target `{other}`; there are {known}")));
            }
        }
    }
    if wish.targets.is_empty() {
        wish.targets = all;
    }
    let mut steps = Steps::default();
    setup::install_cxx(&mut steps)?;
    run_for(&mut steps, &wish)
}

/// All targets, for ten minutes each.
pub fn run_long(steps: &mut Steps) -> Result {
    run_for(steps, &Wish { targets: targets()?, seconds: LONG, keep: false })
}

fn run_for(steps: &mut Steps, wish: &Wish) -> Result {
    if cfg!(windows) {
        println!("libFuzzer is not run on this system");
        return Ok(());
    }
    let target = run::target()?.join("fuzz");
    let programs = build::build(steps, &target, &wish.targets)?;
    let place = Place { programs, target, root: run::root().join(FOLDER) };
    steps.timed("fuzzing", || place.all(wish))
}

/// The names of the programs.
fn targets() -> Result<Vec<String>> {
    let folder = run::root().join(FOLDER).join("fuzz_targets");
    let unreadable = |error| Failure::new(format!("cannot list {}: {error}", folder.display()));
    let entries: Vec<_> =
        fs::read_dir(&folder).and_then(|all| all.collect::<std::io::Result<_>>()).map_err(unreadable)?;
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut names: Vec<String> = entries.into_iter().filter_map(|entry| stem(entry.path())).collect();
    names.sort();
    Ok(names)
}

/// Where programs, inputs and logs are.
struct Place {
    programs: PathBuf,
    target: PathBuf,
    root: PathBuf,
}

impl Place {
    /// As many at a time as there are processors.
    fn all(&self, wish: &Wish) -> Result {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let (queue, reports) = (Mutex::new(wish.targets.iter()), Mutex::new(Vec::new()));
        let take = || queue.lock().ok().and_then(|mut queue| queue.next());
        thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(name) = take() {
                        let report = self.one(name, wish);
                        if let Ok(mut reports) = reports.lock() {
                            reports.push(report);
                        }
                    }
                });
            }
        });
        let reports = reports.into_inner().unwrap_or_default();
        let mut reports = reports.into_iter().collect::<Result<Vec<Report>>>()?;
        reports.sort_by(|one, other| one.target.cmp(&other.target));
        println!("{}", report::table(&reports));
        let found: Vec<&Report> = reports.iter().filter(|report| report.finding.is_some()).collect();
        for report in &found {
            eprintln!("{}", self.told(report));
        }
        match found.as_slice() {
            [] => Ok(()),
            [first, ..] => Err(Failure::new(format!(
                "step `fuzzing` failed (targets with findings: {}, see above)\n  to repeat it: {} {}",
                found.len(),
                self.programs.join(&first.target).display(),
                first.finding.as_deref().unwrap_or_default()
            ))),
        }
    }

    fn one(&self, name: &str, wish: &Wish) -> Result<Report> {
        let (corpus, findings, logs) = ("corpus", "findings", "logs");
        let (found, kept) = (self.target.join(corpus).join(name), self.root.join(corpus).join(name));
        for folder in [&found, &kept, &self.target.join(findings), &self.target.join(logs)] {
            fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
        }
        let log = self.log(name);
        let mut fuzzer = Command::new(self.programs.join(name));
        fuzzer.args(LIMITS).arg(format!("-max_total_time={}", wish.seconds)).arg("-print_final_stats=1");
        fuzzer.arg(format!("-artifact_prefix={}/{name}-", self.target.join(findings).display()));
        let words = self.root.join("dictionaries").join(format!("{name}.dict"));
        if words.is_file() {
            fuzzer.arg(format!("-dict={}", words.display()));
        }
        let status = said_to(&log, fuzzer.args([&found, &kept]))?;
        let text = fs::read(&log).map_err(|error| cannot("read", &log, &error))?;
        let report = Report::read(name, wish.seconds, status, &String::from_utf8_lossy(&text));
        if wish.keep && report.finding.is_none() {
            self.keep(name, &found, &kept)?;
        }
        Ok(report)
    }

    /// Adds to the kept inputs a few of those that reach what they do not: of all sizes, and no more than are soon run.
    fn keep(&self, name: &str, found: &Path, kept: &Path) -> Result {
        let new = self.target.join("new").join(name);
        let _ = fs::remove_dir_all(&new);
        fs::create_dir_all(&new).map_err(|error| cannot("make", &new, &error))?;
        let mut merge = Command::new(self.programs.join(name));
        merge.args(LIMITS).arg("-set_cover_merge=1").args([&new, kept, found]);
        if !said_to(&self.log(name), &mut merge)? {
            return Err(Failure::new(format!(
                "the inputs of {name} were not merged; see {}",
                self.log(name).display()
            )));
        }
        let (before, mut inputs) = (sizes(kept)?.iter().map(|(size, _)| size).sum::<u64>(), sizes(&new)?);
        inputs.sort();
        let total: u64 = inputs.iter().map(|(size, _)| size).sum();
        let step =
            usize::try_from(total / MOST_KEPT.saturating_sub(before).max(1)).unwrap_or(usize::MAX).saturating_add(1);
        for (_, path) in inputs.iter().skip(step / 2).step_by(step) {
            let to = kept.join(path.file_name().unwrap_or_default());
            fs::copy(path, &to).map_err(|error| cannot("write", &to, &error))?;
        }
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.target.join("logs").join(format!("{name}.log"))
    }

    /// The finding in the words of the program, and what to do about it.
    fn told(&self, report: &Report) -> String {
        format!(
            "\n=== {}\n{}\n  all it said: {}\n  once mended, keep the input as {FOLDER}/corpus/{}/NAME, named for what went wrong",
            report.target,
            report.said,
            self.log(&report.target).display(),
            report.target
        )
    }
}

/// The files of a folder with their sizes.
fn sizes(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.and_then(|entry| Ok((entry.metadata()?.len(), entry.path())))).collect()
    });
    entries.map_err(|error| cannot("list", folder, &error))
}

/// Runs it with its words in a file; whether it succeeded.
fn said_to(log: &Path, command: &mut Command) -> Result<bool> {
    let file = File::create(log).map_err(|error| cannot("write", log, &error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => {
            Err(Failure::new(format!("{} cannot be started: {error}", command.get_program().to_string_lossy())))
        }
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
