//! Clients of other lock libraries, one step at a time.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::PATIENCE;

/// The library of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    RedisPy,
    NodeRedlock,
    Rslock,
}

/// The answer of a library to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// Another client holds the lock, or, to `extend` and `release`, the caller no longer does.
    No,
    /// The library does not say.
    Silence,
}

/// The time for which a lock lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lasts {
    For(Duration),
    /// Until it is released. redis-py alone has that, and has it by default.
    Forever,
}

/// A client of its own: with its own connection, and for the libraries of other languages its own process.
#[derive(Debug)]
pub(crate) enum Peer {
    Program(Program),
    Rslock(Rslock),
}

impl Peer {
    pub(crate) fn start(library: Library, url: &str) -> Self {
        match library {
            Library::RedisPy => {
                let mut python = Command::new(installed("LEASEHOLD_PYTHON", "python/bin/python"));
                python.arg(sources().join("python/peer.py")).arg(url);
                Self::Program(Program::start(python))
            }
            Library::NodeRedlock => {
                let mut node = Command::new("node");
                node.arg(sources().join("node/peer.mjs")).arg(url);
                node.current_dir(installed("LEASEHOLD_NODE_FOLDER", "node"));
                Self::Program(Program::start(node))
            }
            Library::Rslock => Self::Rslock(Rslock::start(url)),
        }
    }

    /// Tries once.
    #[must_use]
    pub(crate) fn acquire(&mut self, key: &str, lasts: Lasts) -> Answer {
        match (self, lasts) {
            (Self::Program(program), Lasts::For(ttl)) => program.ask(&format!("acquire {key} {}", ttl.as_millis())),
            (Self::Program(program), Lasts::Forever) => program.ask(&format!("acquire {key} none")),
            (Self::Rslock(rslock), Lasts::For(ttl)) => rslock.acquire(key, ttl),
            (Self::Rslock(_), Lasts::Forever) => panic!("rslock's locks always have a ttl"),
        }
    }

    /// Lets a lock that this client took last longer: redis-py by so much, the others for so much from now on.
    #[must_use]
    pub(crate) fn extend(&mut self, key: &str, ttl: Duration) -> Answer {
        match self {
            Self::Program(program) => program.ask(&format!("extend {key} {}", ttl.as_millis())),
            Self::Rslock(rslock) => rslock.extend(key, ttl),
        }
    }

    /// Releases a lock that this client took.
    #[must_use]
    pub(crate) fn release(&mut self, key: &str) -> Answer {
        match self {
            Self::Program(program) => program.ask(&format!("release {key}")),
            Self::Rslock(rslock) => rslock.release(key),
        }
    }
}

/// A program of `testing/interop`; its README has the protocol.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}; {ADVICE}"));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { command, child, input, answers }
    }

    fn ask(&mut self, line: &str) -> Answer {
        // One that has ended gives no answer either.
        let _ = writeln!(self.input, "{line}");
        match self.answers.recv_timeout(PATIENCE).as_deref() {
            Ok("ok") => Answer::Yes,
            Ok("busy" | "not-held") => Answer::No,
            Ok(other) => panic!("`{line}` to {:?}: {other}", self.command),
            Err(why) => {
                panic!(
                    "no answer to `{line}` from {:?} ({why}); it has ended: {:?}",
                    self.command,
                    self.child.try_wait()
                )
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Rslock {
    runtime: tokio::runtime::Runtime,
    manager: rslock::LockManager,
    held: HashMap<String, rslock::Lock>,
}

impl Rslock {
    fn start(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut manager = rslock::LockManager::new(vec![url]);
        // That many attempts; the delay between them is never used.
        manager.set_retry(1, Duration::from_millis(1));
        Self { runtime, manager, held: HashMap::new() }
    }

    fn acquire(&mut self, key: &str, ttl: Duration) -> Answer {
        let result = self.runtime.block_on(self.manager.lock(key, ttl));
        self.keep(key, result)
    }

    fn extend(&mut self, key: &str, ttl: Duration) -> Answer {
        let result = self.runtime.block_on(self.manager.extend(&self.held[key], ttl));
        self.keep(key, result)
    }

    fn release(&mut self, key: &str) -> Answer {
        let lock = self.held.remove(key).unwrap();
        self.runtime.block_on(self.manager.unlock(&lock));
        Answer::Silence
    }

    fn keep(&mut self, key: &str, result: Result<rslock::Lock, rslock::LockError>) -> Answer {
        match result {
            Ok(lock) => {
                self.held.insert(key.to_owned(), lock);
                Answer::Yes
            }
            Err(rslock::LockError::Unavailable) => Answer::No,
            Err(error) => panic!("rslock: {error}"),
        }
    }
}

const ADVICE: &str = "run cargo xtask test once, or: cargo xtask interop";

/// The path of a package that `cargo xtask interop` installed: from a variable, or the default.
fn installed(variable: &str, below: &str) -> PathBuf {
    let path = env::var_os(variable).map(PathBuf::from).or_else(|| {
        // Test programs lie some levels below the target folder.
        let program = env::current_exe().unwrap();
        program.ancestors().map(|folder| folder.join("interop")).find(|folder| folder.is_dir()).map(|it| it.join(below))
    });
    let path = path.unwrap_or_else(|| panic!("no folder `interop` below the target folder; {ADVICE}"));
    assert!(path.exists(), "{} does not exist; {ADVICE}", path.display());
    path
}

fn sources() -> PathBuf {
    // Cargo's variable comes first, since a copied target folder may carry another tree's path.
    let crate_folder =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    Path::new(&crate_folder).join("../../testing/interop")
}
