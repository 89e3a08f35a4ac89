//! A server that runs as a child process, and the care that it neither outlives its owner nor is mistaken for another.

#[cfg(unix)]
mod child;
#[cfg(windows)]
mod launched;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[cfg(unix)]
pub(crate) use child::{Child, Signal};
#[cfg(windows)]
pub(crate) use launched::{Child, Signal};

use crate::{GLANCE, PATIENCE};

/// The longest time for a server to end on request, before it is killed.
const FAREWELL: Duration = Duration::from_secs(3);

/// The part of a server's output that a failure shows, in bytes.
const TAIL: u64 = 4_000;

/// A program and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) debian_package: &'static str,
}

impl Program {
    /// Its path is that of the variable `LEASEHOLD_REDIS_SERVER` for `redis-server`, and so on: another server of the same kind.
    pub(crate) fn command(self) -> Command {
        let variable = format!("LEASEHOLD_{}", self.name.replace('-', "_").to_uppercase());
        Command::new(std::env::var_os(variable).unwrap_or_else(|| self.name.into()))
    }

    /// The message when the program did not start.
    pub(crate) fn complaint(self, error: &io::Error) -> String {
        let Self { name, debian_package } = self;
        match error.kind() == io::ErrorKind::NotFound {
            true => format!("`{name}` is not installed; on Debian: apt-get install {debian_package}"),
            false => format!("`{name}` cannot be started: {error}"),
        }
    }
}

/// The state of a server that is starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It answers, and it is ours.
    Ready,
    /// There is no answer yet, or only errors.
    NotYet,
    /// Another server answers on the port.
    SomebodyElse,
}

/// The port belongs to another server.
#[derive(Debug)]
pub(crate) struct Taken;

/// A child process with its output in a file. Dropped, it is stopped and its end awaited.
#[derive(Debug)]
pub(crate) struct Daemon {
    program: Program,
    child: Child,
    log: PathBuf,
    /// The position in the log where this process began.
    log_start: u64,
}

impl Daemon {
    /// Starts `command`, whose output is appended to `log`.
    #[track_caller]
    pub(crate) fn spawn(program: Program, command: Command, log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log);
        let output = output.unwrap_or_else(|error| panic!("cannot write {}: {error}", log.display()));
        let log_start = output.metadata().map_or(0, |metadata| metadata.len());
        drop(output);
        let child = Child::start(command, log).unwrap_or_else(|error| panic!("{}", program.complaint(&error)));
        Self { program, child, log: log.to_owned(), log_start }
    }

    /// Waits until `look` shows our server. It looks only while the child runs: a server that did not get its port
    /// ends, and then any answer comes from another process.
    #[track_caller]
    pub(crate) fn wait_until_ready(&mut self, mut look: impl FnMut() -> Sight) -> Result<(), Taken> {
        let start = Instant::now();
        loop {
            let sight = look();
            if let Some(status) = self.ended() {
                if self.said().contains("Address already in use") {
                    return Err(Taken);
                }
                panic!("`{}` ended with {status} while starting; it said:\n{}", self.program.name, self.tail());
            }
            match sight {
                Sight::Ready => return Ok(()),
                Sight::SomebodyElse => {
                    self.kill();
                    return Err(Taken);
                }
                Sight::NotYet => {}
            }
            let waited = start.elapsed();
            assert!(
                waited < PATIENCE,
                "`{}` is not ready after {waited:?}; it said:\n{}",
                self.program.name,
                self.tail()
            );
            sleep(GLANCE);
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.ended()
    }

    /// Sends `signal`, unless the process has ended. Its pid cannot be reused until its end was noticed by
    /// [`Self::ended`].
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // It may end just now; then it needs no signal.
            self.child.signal(signal);
        }
    }

    /// Stops all of its threads where they are; returns when they stand still.
    pub(crate) fn freeze(&mut self) {
        self.signal(Signal::STOP);
        self.child.wait_until_stopped();
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait();
    }

    /// Asks it to end, and kills it when it does not.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        // One that is stopped would only hear of it later.
        self.signal(Signal::CONT);
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() > FAREWELL {
                return self.kill();
            }
            sleep(GLANCE);
        }
    }

    /// The last of what it wrote since it was started.
    pub(crate) fn tail(&self) -> String {
        let said = self.said();
        let start = said.len().saturating_sub(usize::try_from(TAIL).unwrap_or(usize::MAX));
        let start = (start..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(said.len());
        if said.is_empty() { "(nothing)".to_owned() } else { said[start..].to_owned() }
    }

    fn said(&self) -> String {
        let mut bytes = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_start))?;
            file.read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("({} cannot be read: {error})", self.log.display()),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Methods for tests to steer the process of a server, which the method `daemon` gives.
macro_rules! controls {
    ($server:ident) => {
        impl $server {
            /// The process that runs now.
            pub fn pid(&self) -> u32 {
                self.daemon().pid()
            }

            /// True while the process has not ended.
            pub fn is_running(&self) -> bool {
                self.daemon().ended().is_none()
            }

            /// Stops the process with SIGSTOP, like a host that hangs. Connections stay open, and there are no answers.
            pub fn stop_process(&self) {
                self.daemon().freeze();
            }

            /// Lets a stopped process go on.
            pub fn continue_process(&self) {
                self.daemon().signal($crate::process::Signal::CONT);
            }

            /// Ends the process at once, as a crash would.
            pub fn kill(&self) {
                self.daemon().kill();
            }
        }
    };
}

pub(crate) use controls;

/// A file with `text` in `folder`.
#[track_caller]
pub(crate) fn write_file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    path
}

/// A folder of one server's own, removed with it.
#[track_caller]
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("leasehold-servers-").tempdir();
    folder.unwrap_or_else(|error| panic!("cannot create a temporary folder: {error}"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_named_with_its_package() {
        let program = Program { name: "leasehold-no-such-program", debian_package: "some-package" };
        let folder = folder();
        let log = folder.path().join("log");
        let spawn = || Daemon::spawn(program, program.command(), &log);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(spawn)).unwrap_err();
        assert_eq!(
            panic.downcast_ref::<String>().unwrap(),
            "`leasehold-no-such-program` is not installed; on Debian: apt-get install some-package"
        );
    }

    #[test]
    fn server_that_ignores_sigterm_is_killed() {
        let folder = folder();
        let program = Program { name: "sh", debian_package: "dash" };
        let mut command = program.command();
        command.args(["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]);
        let mut daemon = Daemon::spawn(program, command, &folder.path().join("log"));
        crate::wait_until("it ignores the signal", || daemon.said() == "ready\n");
        daemon.stop();
        assert!(daemon.ended().is_some_and(|status| !status.success()));
    }
}
