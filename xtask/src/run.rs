//! Child processes, the steps of a chore, and how long each of them took.

use crate::logs::Logs;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub type Result<T = ()> = std::result::Result<T, Failure>;

/// What went wrong, in words that tell the reader what to do.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The workspace root. Cargo's variable comes first, since a copied target folder may carry another tree's path.
pub fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// `cargo <subcommand> --locked`, in the workspace root.
pub fn cargo(subcommand: &str) -> Command {
    let mut command = plain_cargo(subcommand);
    command.arg("--locked");
    command
}

/// `cargo <subcommand>`, for the subcommands that resolve nothing and so know no `--locked`.
pub fn plain_cargo(subcommand: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).arg(subcommand);
    forget_package(&mut command);
    command
}

/// What Cargo tells of this package is not meant for the next Cargo: build scripts that look at it would run again whenever
/// one starts from here and the next one from a shell, and with them compiles whatever depends on them.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// `cargo <subcommand> --locked --profile ci`: the one profile, so that third-party crates compile once.
pub fn cargo_ci(subcommand: &str) -> Command {
    let mut command = cargo(subcommand);
    command.args(["--profile", "ci"]);
    command
}

/// Whether the command can be started and succeeds; its output is of no interest.
pub fn succeeds(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command beside other steps: its output is shown only when it fails.
pub fn quietly(name: &str, mut command: Command) -> Result {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            eprintln!("\n=== {name}\n{}", said.concat());
            Err(failed(name, &command, &output.status.to_string()))
        }
        Err(error) => Err(failed(name, &command, &error.to_string())),
    }
}

/// What a command prints; what it says on stderr is shown.
pub fn told(name: &str, mut command: Command) -> Result<String> {
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(failed(name, &command, &output.status.to_string())),
        Err(error) => Err(failed(name, &command, &error.to_string())),
    }
}

/// The folder with what the `ci` profile built.
pub fn built() -> Result<PathBuf> {
    Ok(target()?.join("ci"))
}

/// The target folder. Asked of cargo, because variables and configuration may move it.
pub fn target() -> Result<PathBuf> {
    let mut command = cargo("metadata");
    command.args(["--no-deps", "--format-version", "1"]);
    let json = told("find the target folder", command)?;
    match json.split_once("\"target_directory\":\"").and_then(|(_, rest)| rest.split_once('"')) {
        Some((folder, _)) => Ok(PathBuf::from(folder.replace("\\\\", "\\"))),
        None => Err(Failure::new("`cargo metadata` names no target_directory")),
    }
}

/// The steps of one chore. The first that fails ends it.
#[derive(Default)]
pub struct Steps {
    done: Vec<Done>,
    logs: Option<Logs>,
    has_built_all: bool,
    figures: Option<PathBuf>,
}

/// A step that has ended.
struct Done {
    name: String,
    time: Duration,
    /// What it had of the processors, where that can be known: on a machine that others use too, only this can be compared.
    computed: Option<Duration>,
}

struct Start {
    at: Instant,
    computed: Option<Duration>,
}

/// Where programs that measure tell their figures, beside what they print.
const FIGURES: &str = "LEASEHOLD_FIGURES";

impl Steps {
    /// Steps whose output is kept, to be looked at in the end.
    pub fn logged() -> Result<Self> {
        Ok(Self { logs: Some(Logs::new()?), ..Self::default() })
    }

    /// Steps that tell what they measure to this file.
    pub fn telling(figures: PathBuf) -> Self {
        Self { figures: Some(figures), ..Self::default() }
    }

    /// None yet, with the output that an earlier run has left.
    pub fn with_what_is_left() -> Result<Self> {
        Ok(Self { logs: Some(Logs::left()?), ..Self::default() })
    }

    /// What is kept, if it is.
    pub fn logs(&self) -> Option<&Logs> {
        self.logs.as_ref()
    }

    /// Looks at what has been kept, if it was.
    pub fn with_logs(&mut self, name: &str, check: impl FnOnce(&Logs) -> Result) -> Result {
        let start = begin(name);
        self.logs.as_ref().map_or(Ok(()), check)?;
        self.end(name, start);
        Ok(())
    }

    /// Runs a command, whose output is shown.
    pub fn run(&mut self, name: &str, mut command: Command) -> Result {
        let start = begin(name);
        if let Some(figures) = &self.figures {
            command.env(FIGURES, figures);
        }
        let status = match &self.logs {
            Some(logs) => logs.run(name, &mut command),
            None => {
                // Nobody looks at what a first try of a test has said, so there is to be no second one.
                if command.get_args().any(|arg| arg == "nextest") {
                    command.env("NEXTEST_RETRIES", "0");
                }
                command.status()
            }
        };
        match status {
            Ok(status) if status.success() => {
                self.end(name, start);
                Ok(())
            }
            Ok(status) => Err(failed(name, &command, &status.to_string())),
            Err(error) => Err(failed(name, &command, &error.to_string())),
        }
    }

    /// Builds all that later steps use: what they would [`build`](Self::build) each for itself is there then.
    pub fn build_all(&mut self, command: Command) -> Result {
        self.run("build", command)?;
        self.has_built_all = true;
        Ok(())
    }

    /// Builds a part of the workspace, unless all has been built.
    pub fn build(&mut self, name: &str, command: Command) -> Result {
        if self.has_built_all { Ok(()) } else { self.run(name, command) }
    }

    /// Runs a check that lives in this program.
    pub fn timed<T>(&mut self, name: &str, check: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = begin(name);
        let value = check()?;
        self.end(name, start);
        Ok(value)
    }

    fn end(&mut self, name: &str, start: Start) {
        let computed = start.computed.zip(cpu_time()).map(|(before, now)| now.saturating_sub(before));
        let done = Done { name: name.to_owned(), time: start.at.elapsed(), computed };
        // The table is only for who gets to the end.
        println!("--- {}", line(&done, done.name.len() + 1));
        self.done.push(done);
    }

    /// How long each step took, for a person to read.
    pub fn table(&self) -> String {
        let total = Done {
            name: "total".into(),
            time: self.done.iter().map(|done| done.time).sum(),
            computed: self.done.iter().map(|done| done.computed).sum(),
        };
        let all = || self.done.iter().chain([&total]);
        let width = all().map(|done| done.name.chars().count()).max().unwrap_or(0) + 2;
        all().map(|done| format!("  {}\n", line(done, width))).collect()
    }
}

fn line(done: &Done, width: usize) -> String {
    let computed = done.computed.map_or_else(String::new, |time| format!("  {:>7.1} s of cpu", time.as_secs_f64()));
    format!("{:width$}{:>7.1} s{computed}", done.name, done.time.as_secs_f64())
}

fn begin(name: &str) -> Start {
    println!("\n=== {name}");
    Start { at: Instant::now(), computed: cpu_time() }
}

/// What this process and all that it has waited for have computed until now; on Linux.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses, and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_ascii_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok());
    // Linux counts hundredths of a second here, whatever its own clock does.
    Some(Duration::from_millis(ticks.sum::<Option<u64>>()? * 10))
}

fn failed(step: &str, command: &Command, why: &str) -> Failure {
    Failure::new(format!("step `{step}` failed ({why})\n  to repeat it: {}", shell(command)))
}

/// The command as a person would type it.
fn shell(command: &Command) -> String {
    let cargo = std::env::var_os("CARGO");
    let program = command.get_program();
    let program = if cargo.as_deref() == Some(program) { "cargo".into() } else { program.to_string_lossy() };
    let variables = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
    });
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    variables.chain([quoted(&program)]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_named_with_the_command_that_repeats_it() {
        let mut command = Command::new("false");
        command.args(["-D", "two words", "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        let failure = Steps::default().run("docs", command).expect_err("false never succeeds").to_string();
        assert!(failure.contains("step `docs` failed"), "{failure}");
        assert!(failure.ends_with(r"RUSTDOCFLAGS='-D warnings' false -D 'two words' 'it'\''s'"), "{failure}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failed_step() {
        let failure = Steps::default().run("lint", Command::new("/nowhere/at-all")).expect_err("it does not exist");
        assert!(failure.to_string().contains("to repeat it: /nowhere/at-all"), "{failure}");
    }

    #[test]
    fn what_was_built_with_everything_else_is_not_built_again() {
        let build = |steps: &mut Steps| steps.build("a part", Command::new("/nowhere/at-all"));
        let mut steps = Steps::default();
        build(&mut steps).expect_err("it is tried");
        steps.build_all(Command::new("/nowhere/at-all")).expect_err("there is no such program");
        build(&mut steps).expect_err("what failed has built nothing");
        steps.build_all(Command::new("true")).expect("it does nothing");
        build(&mut steps).expect("there is nothing to do");
    }

    #[cfg(unix)]
    #[test]
    fn programs_hear_where_to_tell_their_figures() {
        let path = std::env::temp_dir().join(format!("leasehold-figures-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo told >\"$LEASEHOLD_FIGURES\""]);
        Steps::telling(path.clone()).run("measure", command).expect("it writes a file");
        let told = std::fs::read_to_string(&path);
        let _ = std::fs::remove_file(&path);
        assert_eq!(told.expect("the file is there"), "told\n");
    }

    #[test]
    fn the_table_has_every_finished_step_and_the_total() {
        let done = |name: &str, time, computed: Option<u64>| Done {
            name: name.into(),
            time: Duration::from_millis(time),
            computed: computed.map(Duration::from_millis),
        };
        let table = |done| Steps { done, ..Steps::default() }.table();
        assert_eq!(
            table(vec![done("tidy", 100, Some(50)), done("clippy", 2_900, Some(4_000))]),
            "  tidy        0.1 s      0.1 s of cpu\n  clippy      2.9 s      4.0 s of cpu\n  total       3.0 s      4.0 s of cpu\n"
        );
        assert_eq!(table(vec![done("tidy", 100, None)]), "  tidy       0.1 s\n  total      0.1 s\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_step_computes_is_told() {
        let mut steps = Steps::default();
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"]);
        steps.run("busy", busy).expect("it counts");
        steps.run("idle", Command::new("true")).expect("it does nothing");
        let computed = |at: usize| steps.done[at].computed.expect("Linux tells");
        assert!(computed(0) > computed(1), "{}", steps.table());
    }

    #[test]
    fn the_failed_step_is_not_in_the_table() {
        let mut steps = Steps::default();
        steps.timed("good", || Ok(())).expect("it does nothing");
        steps.timed::<()>("bad", || Err(Failure::new("no"))).expect_err("it fails");
        assert!(steps.table().contains("good") && !steps.table().contains("bad"));
    }
}
