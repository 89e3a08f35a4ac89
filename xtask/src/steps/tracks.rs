//! Tracks of steps that run side by side, and the results that one track waits for from another.

use super::{Steps, Wait};
use crate::run::{Failure, Result};
use std::panic::{self, AssertUnwindSafe};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Waits that are not worth a word in the table.
const SHORT: Duration = Duration::from_secs(1);

/// How long an interrupted step may take to stop its servers. A shell that starts this in the background lets interrupts
/// be ignored.
const GRACE: Duration = Duration::from_secs(10);

/// Starts tracks, which begin at once.
pub struct Tracks<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    steps: Steps,
}

/// The result of a track that may still run.
pub struct Later<T> {
    name: &'static str,
    /// Nothing where the track has failed.
    value: OnceLock<Option<T>>,
}

impl<T> Later<T> {
    /// The result of the track of this name, which is still to be started.
    pub const fn new(name: &'static str) -> Self {
        Self { name, value: OnceLock::new() }
    }

    /// Waits until the track has ended.
    pub fn wait(&self, steps: &mut Steps) -> Result<&T> {
        let began = Instant::now();
        let value = self.value.wait().as_ref();
        let time = began.elapsed();
        if time >= SHORT && steps.waited.as_ref().is_none_or(|before| before.time < time) {
            steps.waited = Some(Wait { result: self.name, time });
        }
        value.ok_or_else(Failure::consequence)
    }
}

impl<'scope, 'env> Tracks<'scope, 'env> {
    /// Starts a track whose result others may wait for.
    pub fn start<T: Send + Sync>(
        &self,
        later: &'env Later<T>,
        track: impl FnOnce(&mut Steps) -> Result<T> + Send + 'scope,
    ) {
        let steps = self.steps.clone();
        self.scope.spawn(move || later.value.set(ended(later.name, steps, track)));
    }

    /// Starts a track that nobody waits for.
    pub fn run(&self, name: &'static str, track: impl FnOnce(&mut Steps) -> Result + Send + 'scope) {
        let steps = self.steps.clone();
        self.scope.spawn(move || ended(name, steps, track));
    }

    /// Starts a track that computes while the others wait.
    pub fn run_patiently(&self, name: &'static str, track: impl FnOnce(&mut Steps) -> Result + Send + 'scope) {
        let steps = Steps { is_patient: true, ..self.steps.clone() };
        self.scope.spawn(move || ended(name, steps, track));
    }
}

/// The result of a track that is run to its end. A failure goes to all tracks.
fn ended<T>(name: &str, mut steps: Steps, track: impl FnOnce(&mut Steps) -> Result<T>) -> Option<T> {
    steps.shared.children.adopt();
    let ended = panic::catch_unwind(AssertUnwindSafe(|| track(&mut steps)));
    let ended = ended.unwrap_or_else(|_| Err(Failure::new(format!("the track `{name}` has panicked"))));
    ended.map_err(|failure| steps.fail(failure)).ok()
}

impl Steps {
    /// Runs tracks side by side until all have ended.
    ///
    /// # Errors
    /// The first failure. The other tracks are interrupted, and start nothing more.
    pub fn beside<'env>(&mut self, plan: impl for<'scope> FnOnce(&Tracks<'scope, 'env>)) -> Result {
        let steps = Self { is_beside: true, ..self.clone() };
        thread::scope(|scope| plan(&Tracks { scope, steps }));
        let failures = std::mem::take(&mut self.state().failures);
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    fn fail(&self, failure: Failure) {
        if failure.is_consequence() {
            return;
        }
        let mut state = self.state();
        let children = self.shared.children.clone();
        if state.failures.is_empty() && !children.running().is_empty() {
            println!("\nerror: {failure}\nThe other steps are interrupted.\n");
            signal("-INT", &children.running());
            thread::spawn(move || {
                thread::sleep(GRACE);
                signal("-TERM", &children.running());
            });
        }
        state.failures.push(failure);
    }
}

/// Sends a signal to processes.
fn signal(signal: &str, processes: &[u32]) {
    if !processes.is_empty() {
        let mut kill = Command::new("kill");
        kill.arg(signal).args(processes.iter().map(u32::to_string));
        let _ = kill.stdin(Stdio::null()).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_result_is_waited_for_and_the_table_says_so() {
        let (mut steps, slow) = (Steps::default(), Later::new("slow"));
        let all = steps.beside(|tracks| {
            tracks.start(&slow, |steps| steps.run("sleep", shell("sleep 1.2")).map(|()| 7));
            tracks.run("next", |steps| {
                assert_eq!(*slow.wait(steps)?, 7);
                steps.timed("use it", || Ok(()))
            });
        });
        all.expect("both end");
        let table = steps.table();
        let line = table.lines().find(|line| line.contains("use it")).expect("it has ended");
        assert!(line.ends_with("after 1 s for: slow"), "{table}");
    }

    #[cfg(unix)]
    #[test]
    fn a_failure_interrupts_the_others_and_is_the_only_one_reported() {
        let (began, went_on, long) = (Instant::now(), AtomicBool::new(false), Later::new("long"));
        let started = std::env::temp_dir().join(format!("leasehold-tracks-{}", std::process::id()));
        let started = started.display();
        let failure = Steps::default().beside(|tracks| {
            tracks.start(&long, |steps| {
                steps.run("sleep", shell(&format!("touch '{started}'; exec sleep 60")))?;
                went_on.store(true, Ordering::Relaxed);
                Ok(())
            });
            tracks.run("needs it", |steps| long.wait(steps).copied());
            tracks.run("bad", |steps| {
                steps.run("fail", shell(&format!("until rm '{started}' 2>&-; do sleep 0.05; done; exit 3")))
            });
        });
        let failure = failure.expect_err("one fails").to_string();
        assert!(failure.contains("step `fail` failed"), "{failure}");
        assert!(began.elapsed() < Duration::from_secs(30) && !went_on.load(Ordering::Relaxed));
    }

    #[test]
    fn nothing_starts_after_a_failure() {
        let bad = Later::<()>::new("bad");
        let failure = Steps::default().beside(|tracks| {
            tracks.start(&bad, |_| Err(Failure::new("no")));
            tracks.run("late", |steps| {
                bad.wait(steps).expect_err("it has failed");
                steps.run("late", shell("exit 0"))
            });
        });
        assert_eq!(failure.expect_err("one fails").to_string(), "no");
    }

    #[test]
    fn a_track_that_panics_is_a_failure() {
        let broken = Later::<()>::new("broken");
        let failure = Steps::default().beside(|tracks| {
            tracks.start(&broken, |_| panic!("on purpose"));
            tracks.run("needs it", |steps| broken.wait(steps).copied());
        });
        assert!(failure.expect_err("one panics").to_string().contains("`broken` has panicked"));
    }
}
