//! The steps of a chore: their output, how long each took, and what it waited for.

mod tracks;

use crate::logs::Logs;
use crate::run::{self, Children, Failure, Result};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use tracks::Later;

/// The steps of one chore, in one track or in several side by side. The first that fails ends all of them.
#[derive(Clone, Default)]
pub struct Steps {
    shared: Arc<Shared>,
    /// Other tracks run at the same time, so output is kept in a file, and shown only where a step fails.
    is_beside: bool,
    /// This track leaves the processors to the others.
    is_patient: bool,
    /// Time that the next step of this track has waited for the results of others.
    waited: Option<Wait>,
}

struct Shared {
    began: Instant,
    logs: Option<Logs>,
    /// Of all tracks.
    children: Children,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: Vec<Done>,
    failures: Vec<Failure>,
    has_built_all: bool,
}

/// A step that has ended.
struct Done {
    name: String,
    began: Duration,
    took: Duration,
    /// Processor time where it is known: on a machine that others use too, only this can be compared.
    computed: Option<Duration>,
    waited: Option<Wait>,
}

#[derive(Clone)]
struct Wait {
    result: &'static str,
    time: Duration,
}

struct Start {
    at: Instant,
    computed: Option<Duration>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { began: Instant::now(), logs: None, children: Children::default(), state: Mutex::default() }
    }
}

impl Steps {
    /// Steps whose output is kept for checks at the end.
    pub fn logged() -> Result<Self> {
        Ok(Self::new(Shared { logs: Some(Logs::new()?), ..Shared::default() }))
    }

    /// No steps yet, with the output that an earlier run has left.
    pub fn with_what_is_left() -> Result<Self> {
        Ok(Self::new(Shared { logs: Some(Logs::left()?), ..Shared::default() }))
    }

    fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), ..Self::default() }
    }

    /// The kept output, if it is kept.
    pub fn logs(&self) -> Option<&Logs> {
        self.shared.logs.as_ref()
    }

    /// Checks what has been kept, if it was.
    pub fn with_logs(&mut self, name: &str, check: impl FnOnce(&Logs) -> Result) -> Result {
        let shared = Arc::clone(&self.shared);
        self.timed(name, || shared.logs.as_ref().map_or(Ok(()), check))
    }

    /// Runs a command. Its output is shown, or in a track beside others kept in a file.
    pub fn run(&mut self, name: &str, mut command: Command) -> Result {
        if self.shared.logs.is_none() && command.get_args().any(|arg| arg == "nextest") {
            // Without logs nobody checks why a first try has failed, so there must not be a second one.
            command.env("NEXTEST_RETRIES", "0");
        }
        let start = self.begin(name);
        let as_typed = |why: &str| run::failed(name, &command, why);
        let mut started = if self.is_patient { patient(&command) } else { copy(&command) };
        let output = match self.logs() {
            Some(logs) => match logs.keep(name, &mut started) {
                Ok(output) => Some(output),
                Err(error) => return Err(as_typed(&error.to_string())),
            },
            None => None,
        };
        if self.is_beside {
            started.stdin(Stdio::null());
        }
        let child = self.state().start(&mut started);
        let mut child = match child {
            Ok(Some(child)) => child,
            Ok(None) => return Err(Failure::consequence()),
            Err(error) => return Err(as_typed(&error.to_string())),
        };
        let status = match &output {
            Some(output) if !self.is_beside => output.show_until(|| run::wait(&mut child)),
            Some(_) | None => run::wait(&mut child),
        };
        if let Some(logs) = self.logs() {
            logs.keep_report(name, &command).map_err(|error| as_typed(&error.to_string()))?;
        }
        match status {
            Ok(status) if status.success() => {
                self.end(name, start);
                Ok(())
            }
            Ok(_) if self.is_beside && !self.state().failures.is_empty() => Err(Failure::consequence()),
            Ok(status) => {
                if let Some(output) = output.filter(|_| self.is_beside) {
                    output.show();
                }
                Err(as_typed(&status.to_string()))
            }
            Err(error) => Err(as_typed(&error.to_string())),
        }
    }

    /// Runs a command with a low priority: it computes while tests of other tracks wait.
    pub fn run_patiently(&mut self, name: &str, command: Command) -> Result {
        let was_patient = std::mem::replace(&mut self.is_patient, true);
        let done = self.run(name, command);
        self.is_patient = was_patient;
        done
    }

    /// Builds all that later steps use: what they would [`build`](Self::build) each for itself exists then.
    pub fn build_all(&mut self, command: Command) -> Result {
        self.run("build", command)?;
        self.state().has_built_all = true;
        Ok(())
    }

    pub fn has_built_all(&self) -> bool {
        self.state().has_built_all
    }

    /// Builds a part of the workspace, unless all has been built.
    pub fn build(&mut self, name: &str, command: Command) -> Result {
        if self.has_built_all() { Ok(()) } else { self.run(name, command) }
    }

    /// Runs a check that lives in this program.
    pub fn timed<T>(&mut self, name: &str, check: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.state().failures.is_empty() {
            return Err(Failure::consequence());
        }
        let start = self.begin(name);
        let value = check()?;
        self.end(name, start);
        Ok(value)
    }

    fn begin(&self, name: &str) -> Start {
        if self.is_beside {
            println!("{} begin  {name}", clock(self.shared.began.elapsed()));
        } else {
            println!("\n=== {name}");
        }
        Start { at: Instant::now(), computed: run::computed() }
    }

    fn end(&mut self, name: &str, start: Start) {
        let computed = start.computed.zip(run::computed()).map(|(before, now)| now.saturating_sub(before));
        let (began, took) = (start.at.duration_since(self.shared.began), start.at.elapsed());
        let done = Done { name: name.to_owned(), began, took, computed, waited: self.waited.take() };
        // The table is printed only where all steps pass.
        if self.is_beside {
            println!("{} end    {name}, {:.1} s", clock(self.shared.began.elapsed()), took.as_secs_f64());
        } else {
            println!("--- {name}  {}", figures(took, computed));
        }
        self.state().done.push(done);
    }

    /// How long each step took, and what it waited for, for a person to read.
    pub fn table(&self) -> String {
        table(&mut self.state().done, self.shared.began.elapsed(), run::computed_in_all())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Starts nothing once a step has failed.
    fn start(&mut self, command: &mut Command) -> std::io::Result<Option<std::process::Child>> {
        if !self.failures.is_empty() {
            return Ok(None);
        }
        run::spawn(command).map(Some)
    }
}

/// The same command for a second use.
fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    fill(&mut copy, command);
    copy
}

/// The command with a low priority: it computes while the others wait.
fn patient(command: &Command) -> Command {
    if !cfg!(unix) {
        return copy(command);
    }
    let mut nice = Command::new("nice");
    nice.args(["-n", "15"]).arg(command.get_program());
    fill(&mut nice, command);
    nice
}

fn fill(copy: &mut Command, command: &Command) {
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
}

fn table(done: &mut [Done], took: Duration, computed: Option<Duration>) -> String {
    done.sort_by_key(|done| done.began);
    let width = done.iter().map(|done| done.name.chars().count()).max().unwrap_or(0).max("total".len()) + 2;
    let mut text = format!("  {:width$}{:>9}{:>11}{:>11}\n", "step", "began", "took", "cpu");
    for done in done {
        let waited = done
            .waited
            .as_ref()
            .map_or_else(String::new, |wait| format!("  after {:.0} s for: {}", wait.time.as_secs_f64(), wait.result));
        text +=
            &format!("  {:width$}{:>9}{}{waited}\n", done.name, clock(done.began), figures(done.took, done.computed));
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let busy = computed.filter(|_| !took.is_zero()).map_or_else(String::new, |computed| {
        let share = computed.as_secs_f64() / took.as_secs_f64();
        format!("  {share:.1} of {processors} processors")
    });
    text + &format!("  {:width$}{:>9}{}{busy}\n", "total", "", figures(took, computed))
}

fn figures(took: Duration, computed: Option<Duration>) -> String {
    let computed = computed.map_or_else(String::new, |time| format!("{:>9.1} s", time.as_secs_f64()));
    format!("{:>9.1} s{computed}", took.as_secs_f64())
}

fn clock(time: Duration) -> String {
    format!("{:>3}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
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
        build(&mut steps).expect_err("a failed build has built nothing");
        steps.build_all(Command::new("true")).expect("it does nothing");
        build(&mut steps).expect("there is nothing to do");
    }

    #[test]
    fn the_table_is_in_the_order_of_time_and_says_what_waited() {
        let done = |name: &str, began, took, waited: Option<u64>| Done {
            name: name.into(),
            began: Duration::from_secs(began),
            took: Duration::from_millis(took),
            computed: Some(Duration::from_millis(took / 2)),
            waited: waited.map(|time| Wait { result: "build", time: Duration::from_secs(time) }),
        };
        let mut all = [done("tests", 70, 100, Some(69)), done("tidy", 1, 2_900, None)];
        let table = table(&mut all, Duration::from_secs(100), None);
        assert_eq!(
            table,
            "  step       began       took        cpu\n  tidy        0:01      2.9 s      1.4 s\n  tests       1:10      0.1 s      0.1 s  after 69 s for: build\n  total               100.0 s\n"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_a_step_is_measured() {
        let mut steps = Steps::default();
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"]);
        steps.run("busy", busy).expect("it counts");
        steps.run("idle", Command::new("true")).expect("it does nothing");
        let state = steps.state();
        let computed = |at: usize| state.done[at].computed.expect("Linux tells");
        assert!(computed(0) > computed(1));
    }

    #[test]
    fn the_failed_step_is_not_in_the_table() {
        let mut steps = Steps::default();
        steps.timed("good", || Ok(())).expect("it does nothing");
        steps.timed::<()>("bad", || Err(Failure::new("no"))).expect_err("it fails");
        assert!(steps.table().contains("good") && !steps.table().contains("bad"));
    }

    #[cfg(unix)]
    #[test]
    fn a_patient_step_runs_with_a_low_priority() {
        let mut steps = Steps { is_patient: true, ..Steps::default() };
        let mut own = Command::new("sh");
        own.args(["-c", "test \"$(nice)\" -ge 15"]).current_dir("/").env("LANG", "C");
        steps.run("nice", own).expect("nice says so");
    }
}
