//! A process of the Linux machine beside Wine, started and signalled by `launcher.py` there.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::windows::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use serde_json::json;

/// The address of the launcher.
const LAUNCHER: &str = "LEASEHOLD_LAUNCHER";

/// A signal of Linux.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal(i32);

impl Signal {
    pub(crate) const KILL: Self = Self(9);
    pub(crate) const TERM: Self = Self(15);
    pub(crate) const CONT: Self = Self(18);
    pub(crate) const STOP: Self = Self(19);
}

/// The launcher kills the process when the connection ends.
#[derive(Debug)]
pub(crate) struct Child {
    launcher: BufReader<TcpStream>,
    id: u32,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts the command, whose output is appended to `log`.
    pub(super) fn start(command: Command, log: &Path) -> io::Result<Self> {
        let address = std::env::var(LAUNCHER).map_err(|_| io::Error::other(format!("{LAUNCHER} is not set")))?;
        let launcher = BufReader::new(TcpStream::connect(address)?);
        let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
        let words: Vec<_> = [command.get_program()].into_iter().chain(command.get_args()).map(text).collect();
        let variables = command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
        let variables: BTreeMap<_, _> = variables.collect();
        let mut child = Self { launcher, id: 0, ended: None };
        let started = child.ask(&json!({"words": words, "variables": variables, "log": log}).to_string())?;
        child.id = started.parse().map_err(|_| io::Error::new(io::ErrorKind::NotFound, started))?;
        Ok(child)
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.look("look")
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        let _ = self.ask(&format!("signal {}", signal.0));
    }

    pub(super) fn wait_until_stopped(&mut self) {
        let _ = self.ask("stopped");
    }

    pub(super) fn wait(&mut self) {
        self.look("wait");
    }

    fn look(&mut self, order: &str) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let status = self.ask(order).ok()?.parse::<i32>().ok();
            self.ended = status.map(|status| ExitStatus::from_raw(status.cast_unsigned()));
        }
        self.ended
    }

    fn ask(&mut self, order: &str) -> io::Result<String> {
        self.launcher.get_mut().write_all(format!("{order}\n").as_bytes())?;
        let mut answer = String::new();
        self.launcher.read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }
}
