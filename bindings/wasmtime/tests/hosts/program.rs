//! Programs in other languages that hold a lock, and what they say.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Long enough for a machine that is busy with other things; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(180);
const PYTHON_SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../component/hosts/python");

/// The language that a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    C,
    /// Compiled so that what it does with memory is watched.
    CheckedC,
}

impl Language {
    /// Such as `lock`, with the component as its first argument.
    pub(crate) fn program(self, name: &str) -> Command {
        let mut command = match self {
            Self::Python => {
                let mut command = Command::new(variable("LEASEHOLD_PYTHON"));
                command.arg(Path::new(PYTHON_SOURCES).join(name).with_extension("py"));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                // Compiled with the settings that an engine of wasmtime has by default.
                command.arg(variable("LEASEHOLD_PYTHON_COMPONENT"));
                return command;
            }
            Self::C => Command::new(variable("LEASEHOLD_C_HOST").join("plain").join(name)),
            Self::CheckedC => {
                let mut command = Command::new(variable("LEASEHOLD_C_HOST").join("checked").join(name));
                // No status that the programs have themselves.
                command.env("ASAN_OPTIONS", "exitcode=99").env("LSAN_OPTIONS", "exitcode=99");
                command
            }
        };
        command.arg(variable("LEASEHOLD_COMPONENT"));
        command
    }
}

pub(crate) fn variable(name: &str) -> PathBuf {
    let value = env::var_os(name).map(PathBuf::from);
    value.unwrap_or_else(|| panic!("{name} is not set; `cargo xtask component --test` sets it"))
}

/// A program that runs. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        Self { child, lines, heard: Vec::new() }
    }

    /// The next line that begins with `word`, without it. Lines before it are passed over, but none that says that the
    /// lease is lost.
    #[track_caller]
    pub(crate) fn hear(&mut self, word: &str) -> String {
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(why) => panic!("it never says `{word}` ({why}); it said {:?}", self.heard),
            };
            self.heard.push(line.clone());
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim_start().to_owned();
            }
            assert!(!line.starts_with("lost"), "instead of `{word}`: {:?}", self.heard);
        }
    }

    /// The fencing token, once the lock is granted.
    #[track_caller]
    pub(crate) fn token(&mut self) -> u64 {
        self.hear("acquired").parse().unwrap()
    }

    /// Gives it a line to read.
    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap_or_else(|error| panic!("{line}: {error}; it said {:?}", self.heard));
    }

    /// Ends its input, upon which it gives the lock back.
    pub(crate) fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Its status, when it has ended.
    #[track_caller]
    pub(crate) fn status(&mut self) -> i32 {
        // Its output ends with it.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; it said {:?}", self.heard),
            }
        }
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| panic!("{status}; it said {:?}", self.heard))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
