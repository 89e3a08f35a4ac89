//! The workers as processes, in three languages.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_bench::child::{self, Child};

use super::books::{Book, Entry, What};
use super::worker::Assignment;
use crate::Result;

/// The parts of this program.
pub const WORK: &str = "work";
pub const LAUNCH: &str = "launch";

/// Where `cargo xtask chaos` says things are.
const PYTHON: &str = "LEASEHOLD_CHAOS_PYTHON";
const NODE: &str = "LEASEHOLD_CHAOS_NODE";
const WORKERS: &str = "LEASEHOLD_CHAOS_WORKERS";

/// What a worker is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Over the Rust client.
    Rust,
    /// Over the Python package.
    Python,
    /// Over the Node package.
    Node,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::Node];

    /// The first half of a worker's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    fn words(self, assignment: &Assignment) -> Result<Vec<String>> {
        let there = |variable: &str| match env::var(variable) {
            Ok(value) => Ok(value),
            Err(_) => Err(format!("{variable} is not set: start this with cargo xtask chaos")),
        };
        let script = |name: &str| Ok::<_, String>(format!("{}/{name}", there(WORKERS)?));
        let text = assignment.text();
        Ok(match self {
            Self::Rust => {
                vec![env::current_exe()?.display().to_string(), child::PART.to_owned(), WORK.to_owned(), text]
            }
            Self::Python => vec![there(PYTHON)?, script("worker.py")?, text],
            Self::Node => {
                there(NODE)?;
                vec!["node".to_owned(), script("worker.mjs")?, text]
            }
        })
    }
}

/// What the workers have told so far.
#[derive(Default)]
pub struct Heard {
    books: Vec<Book>,
    /// Who holds the lock, as far as that is known: the number of its book.
    holder: Option<usize>,
    /// A line that was none.
    pub complaint: Option<String>,
}

impl Heard {
    fn open(&mut self, worker: &str, group: usize) -> usize {
        self.books.push(Book { worker: worker.to_owned(), group, entries: Vec::new(), ended: 0 });
        self.books.len() - 1
    }

    fn hear(&mut self, book: usize, line: &str) {
        match Entry::parse(line) {
            Ok(entry) => {
                match entry.what {
                    What::Granted { .. } => self.holder = Some(book),
                    What::Releasing { .. } | What::Lost { .. } | What::Told { .. } if self.holder == Some(book) => {
                        self.holder = None;
                    }
                    _ => {}
                }
                self.books[book].entries.push(entry);
            }
            Err(error) => self.complaint = Some(format!("{}: {error}", self.books[book].worker)),
        }
    }

    /// The process of this book was killed then.
    pub fn end(&mut self, book: usize, at: u64) {
        self.books[book].ended = at;
        if self.holder == Some(book) {
            self.holder = None;
        }
    }

    /// The number of the holder's book.
    pub fn holder(&self) -> Option<usize> {
        self.holder
    }

    /// All books, for the checker.
    pub fn take(&mut self) -> Vec<Book> {
        std::mem::take(&mut self.books)
    }
}

/// What several threads write to.
pub type Ears = Arc<Mutex<Heard>>;

/// Whatever happened to others, what was heard was heard.
pub fn heard(ears: &Ears) -> MutexGuard<'_, Heard> {
    ears.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's part in a run.
#[derive(Clone, Debug)]
pub struct Role {
    /// What it is written in.
    pub language: Language,
    /// Which way to the stores it goes.
    pub group: usize,
    /// What it is told.
    pub assignment: Assignment,
    /// What stands in front of its command.
    pub inside: Vec<String>,
}

impl Role {
    /// Such as `python-1`.
    pub fn name(&self) -> &str {
        &self.assignment.name
    }

    /// Starts it. What it tells is heard, and kept in `books`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, ears: &Ears, books: &Path) -> Result<(Child, usize)> {
        let number = heard(ears).open(self.name(), self.group);
        let mut words = self.inside.clone();
        words.extend(self.language.words(&self.assignment)?);
        let mut file = File::options().create(true).append(true).open(books.join(format!("{}.jsonl", self.name())))?;
        let ears = Arc::clone(ears);
        let child = Child::run(&mut launch(&words)?, move |line| {
            let Some(line) = line else { return };
            // For people who look; the checker has what was heard.
            let _ = writeln!(file, "{line}");
            heard(&ears).hear(number, line);
        })?;
        Ok((child, number))
    }
}

/// A command that dies with this process, even while it is stopped, and that a Ctrl-C does not reach.
///
/// # Errors
/// When this program does not know where it is.
pub fn launch(words: &[String]) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(child::PART).arg(LAUNCH).args(words).process_group(0);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// In the child: becomes the command.
///
/// # Errors
/// When it cannot be started.
pub fn become_command(words: &[String]) -> Result {
    let [program, args @ ..] = words else { return Err("there is nothing to launch".into()) };
    Err(format!("{program}: {}", Command::new(program).args(args).exec()).into())
}

/// Removes a folder when this process is gone, however it went.
pub struct Janitor(std::process::Child);

/// The argument that makes this program a janitor; the folder follows.
pub const JANITOR: &str = "--janitor";

impl Janitor {
    /// Has `folder` looked after.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn hire(folder: &Path) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        let command = command.arg(JANITOR).arg(folder).process_group(0).stdin(std::process::Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// In the child.
    pub fn work(folder: OsString) {
        let folder = PathBuf::from(folder);
        // Ends when nobody is there to write.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        for _ in 0..100 {
            // Servers may still be on their way out.
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
