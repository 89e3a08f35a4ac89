//! The workers as processes, in several languages.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_bench::child::{self, Child};

use super::journal::{Entry, Event, Journal};
use super::worker::Assignment;
use crate::Result;

/// Names of parts of this program, which it starts as child processes.
pub const WORK: &str = "work";
pub const LAUNCH: &str = "launch";

/// Variables in which `cargo xtask chaos` passes paths.
const PYTHON: &str = "LEASEHOLD_CHAOS_PYTHON";
const NODE: &str = "LEASEHOLD_CHAOS_NODE";
/// Only where there is Go.
const GO: &str = "LEASEHOLD_CHAOS_GO";
const WORKERS: &str = "LEASEHOLD_CHAOS_WORKERS";

fn path(variable: &str) -> Result<String> {
    env::var(variable).map_err(|_| format!("{variable} is not set: start this with cargo xtask chaos").into())
}

/// The language of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, on the Rust client.
    Rust,
    /// Python, on the Python package.
    Python,
    /// JavaScript, on the Node package.
    Node,
    /// Go, on the Go module.
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Node, Self::Go];

    /// Tells if there are workers in it for these stores. Those in Go use Redis.
    pub fn reaches(self, stores: &[String]) -> bool {
        self != Self::Go || env::var_os(GO).is_some() && stores.iter().all(|url| url.starts_with("redis://"))
    }

    /// The first part of a worker's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Node => "node",
            Self::Go => "go",
        }
    }

    fn words(self, assignment: &Assignment) -> Result<Vec<String>> {
        let text = assignment.text();
        match self {
            Self::Rust => {
                Ok(vec![env::current_exe()?.display().to_string(), child::PART.to_owned(), WORK.to_owned(), text])
            }
            Self::Python | Self::Node => self.script("worker", text),
            Self::Go => Ok(vec![path(GO)?, text]),
        }
    }

    /// The words that start a script of `testing/chaos/workers`, whose name is given without its ending.
    ///
    /// # Errors
    /// For a language without scripts, and where `cargo xtask chaos` has not passed the paths.
    pub fn script(self, name: &str, argument: String) -> Result<Vec<String>> {
        let (program, ending) = match self {
            Self::Python => (path(PYTHON)?, "py"),
            Self::Node => {
                path(NODE)?;
                ("node".to_owned(), "mjs")
            }
            Self::Rust | Self::Go => return Err(format!("there are no scripts in {}", self.name()).into()),
        };
        Ok(vec![program, format!("{}/{name}.{ending}", path(WORKERS)?), argument])
    }
}

/// The journals of all workers so far.
#[derive(Default)]
pub struct Journals {
    journals: Vec<Journal>,
    /// The number of the holder's journal, if the holder is known.
    holder: Option<usize>,
    /// An error for a line that could not be read.
    pub bad_line: Option<String>,
}

impl Journals {
    fn open(&mut self, worker: &str, group: usize) -> usize {
        self.journals.push(Journal { worker: worker.to_owned(), group, entries: Vec::new(), ended: 0 });
        self.journals.len() - 1
    }

    fn add(&mut self, journal: usize, line: &str) {
        match Entry::parse(line) {
            Ok(entry) => {
                match entry.event {
                    Event::Granted { .. } => self.holder = Some(journal),
                    Event::Releasing { .. } | Event::Lost { .. } | Event::Notified { .. }
                        if self.holder == Some(journal) =>
                    {
                        self.holder = None;
                    }
                    _ => {}
                }
                self.journals[journal].entries.push(entry);
            }
            Err(error) => self.bad_line = Some(format!("{}: {error}", self.journals[journal].worker)),
        }
    }

    /// Notes that the process of a journal was killed.
    pub fn end(&mut self, journal: usize, at: u64) {
        self.journals[journal].ended = at;
        if self.holder == Some(journal) {
            self.holder = None;
        }
    }

    /// The number of the holder's journal.
    pub fn holder(&self) -> Option<usize> {
        self.holder
    }

    /// Takes all journals, for the checker.
    pub fn take(&mut self) -> Vec<Journal> {
        std::mem::take(&mut self.journals)
    }
}

/// Journals that several threads add to.
pub type SharedJournals = Arc<Mutex<Journals>>;

/// Locks the journals. A panic of another thread does not spoil them.
pub fn lock(journals: &SharedJournals) -> MutexGuard<'_, Journals> {
    journals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All that is needed to start a worker.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// The language.
    pub language: Language,
    /// The group, which decides its path to the stores.
    pub group: usize,
    /// The arguments of the worker program.
    pub assignment: Assignment,
    /// The words before its command, which enter a network namespace.
    pub inside: Vec<String>,
}

impl WorkerSpec {
    /// The worker's name, such as `python-1`.
    pub fn name(&self) -> &str {
        &self.assignment.name
    }

    /// Starts the worker. Its lines are added to `journals` and written to the folder `output`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, journals: &SharedJournals, output: &Path) -> Result<(Child, usize)> {
        let number = lock(journals).open(self.name(), self.group);
        let mut words = self.inside.clone();
        words.extend(self.language.words(&self.assignment)?);
        let mut file = File::options().create(true).append(true).open(output.join(format!("{}.jsonl", self.name())))?;
        let journals = Arc::clone(journals);
        let child = Child::run(&mut launch(&words)?, move |line| {
            let Some(line) = line else { return };
            // For people. The checker reads the journals in memory.
            let _ = writeln!(file, "{line}");
            lock(&journals).add(number, line);
        })?;
        Ok((child, number))
    }
}

/// A command that is killed with this process, even while it is stopped. A Ctrl-C does not reach it.
///
/// # Errors
/// When this program does not know where it is.
pub fn launch(words: &[String]) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(child::PART).arg(LAUNCH).args(words).process_group(0);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Replaces this child process by the command.
///
/// # Errors
/// When it cannot be started.
pub fn become_command(words: &[String]) -> Result {
    let [program, args @ ..] = words else { return Err("there is nothing to launch".into()) };
    Err(format!("{program}: {}", Command::new(program).args(args).exec()).into())
}

/// A child process that removes a folder when this process has ended, even if it was killed.
pub struct Janitor(std::process::Child);

/// The argument that makes this program a janitor; the folder follows.
pub const JANITOR: &str = "--janitor";

impl Janitor {
    /// Starts a janitor for `folder`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(folder: &Path) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        let command = command.arg(JANITOR).arg(folder).process_group(0).stdin(std::process::Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// The janitor's work, in the child process.
    pub fn work(folder: OsString) {
        let folder = PathBuf::from(folder);
        // The pipe is closed when the parent has ended.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        for _ in 0..100 {
            // Servers may still be stopping.
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
