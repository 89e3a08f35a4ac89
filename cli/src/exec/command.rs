//! The command as a process group, which is started, signalled, watched and reaped as a whole.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, getppid, kill_process_group, test_kill_process_group,
    waitid, waitpgid,
};
use rustix::stdio::{stderr, stdin, stdout};

use super::guard::{self, Guard};
use super::inbox::{Event, tell};
use super::output::Output;
use super::remains::Remains;
use super::terminal::{self, Terminal};
use crate::status;

/// A command that runs, or is not reaped yet. Dropping it kills the rest of its group.
pub(super) struct Running {
    child: Child,
    group: Pid,
    guard: Option<Guard>,
    reaped: bool,
    remains: Remains,
    output: Option<Output>,
}

impl Running {
    /// Starts the command in a group of its own. Call it on a thread that outlives the command: the system takes the
    /// end of that thread for the death of the parent.
    ///
    /// # Errors
    /// The command cannot be started.
    pub(super) fn start(
        (command, keeps_output): (&[OsString], bool),
        environment: impl IntoIterator<Item = (&'static str, OsString)>,
        terminal: &Terminal,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let [program, arguments @ ..] = command else { return Err(io::ErrorKind::NotFound.into()) };
        let tty = terminal.for_command().map(std::fs::File::try_clone).transpose()?;
        // Without a shell there is no guard, but on Linux the command itself still dies with leasehold.
        let guard = Guard::start().ok();
        let desk = guard.as_ref().map(Guard::desk).transpose()?;
        let parent = getpid();
        let prepare = move || {
            die_with(parent)?;
            pass_streams_on();
            if let Some(desk) = &desk {
                guard::report_to(desk.as_fd())?;
            }
            if let Some(tty) = &tty {
                terminal::take_for_self(tty);
            }
            Ok(())
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(environment).process_group(0);
        if keeps_output {
            command.stdout(Stdio::piped());
        }
        // SAFETY: between fork and exec only system calls are made: no memory is allocated, no lock taken.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let stream = child.stdout.take();
        let remains = Remains::of(group);
        let mut running = Self { child, group, guard, reaped: false, remains, output: None };
        running.output = stream.map(Output::of).transpose()?;
        thread::Builder::new().name("leasehold-command".to_owned()).spawn(move || watch(group, &events))?;
        Ok(running)
    }

    /// The output, if it is kept.
    pub(super) fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to all processes of the group. Returns `false` where the system refuses, because all of them run
    /// as another user. A group that has ended is no error.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        kill_process_group(self.group, signal) != Err(Errno::PERM)
    }

    /// Tells if the command was continued since it was last stopped.
    pub(super) fn went_on(&self) -> bool {
        let continued = waitid(WaitId::Pid(self.group), WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG);
        matches!(continued, Ok(Some(_)))
    }

    /// Tells if processes of the group are left that have not ended, after the command itself was reaped.
    pub(super) fn has_remains(&mut self) -> bool {
        // The first process of a container inherits orphans, and must reap them.
        while let Ok(Some(_)) = waitpgid(self.group, WaitOptions::NOHANG) {}
        match test_kill_process_group(self.group) {
            Ok(()) => self.remains.are_at_work(),
            // EPERM means that they exist, and run as another user.
            Err(error) => error != Errno::SRCH,
        }
    }

    /// The command's status after [`Event::Ended`], as a shell would show it.
    ///
    /// # Errors
    /// It was reaped by other code of this process.
    pub(super) fn reap(&mut self) -> io::Result<u8> {
        let ended = self.child.wait();
        self.reaped = true;
        ended.map(status_of)
    }

    /// Lets the rest of the group go, after the command has ended.
    pub(super) fn dismiss(&mut self) {
        self.guard = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
        self.dismiss();
    }
}

/// The status for a command that cannot be started, and the message.
pub(super) fn not_started(command: &[OsString], error: &io::Error) -> (u8, String) {
    let name = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound {
        (status::NOT_FOUND, format!("{name}: command not found; the lock was released"))
    } else if kind == io::ErrorKind::OutOfMemory || kind == io::ErrorKind::WouldBlock {
        (status::SYSTEM, format!("{name} cannot be started: {error}; the lock was released"))
    } else {
        (status::NOT_EXECUTABLE, format!("{name} cannot be executed: {error}; the lock was released"))
    }
}

fn status_of(ended: ExitStatus) -> u8 {
    let code = ended.code().or_else(|| ended.signal().map(|signal| i32::from(status::SIGNAL) + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Reports stops and the end without reaping: until it is reaped, the group's number cannot be reused.
fn watch(command: Pid, events: &Sender<Event>) {
    let both = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        let stop = match waitid(WaitId::Pid(command), both) {
            Ok(Some(status)) => status.stopping_signal().and_then(Signal::from_named_raw),
            Err(Errno::INTR) => continue,
            Ok(None) | Err(_) => None,
        };
        let Some(stop) = stop else {
            tell(events, Event::Ended);
            return;
        };
        // Takes the report of a stop, or it would come again at once.
        let _ = waitid(WaitId::Pid(command), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        tell(events, Event::Stopped(stop));
    }
}

/// Leaves the command its standard streams, also in Node, which closes those of its children.
fn pass_streams_on() {
    for stream in [stdin(), stdout(), stderr()] {
        // One that is closed stays closed.
        let _ = fcntl_setfd(stream, FdFlags::empty());
    }
}

/// Makes the system kill this process when its parent dies.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before.
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn die_with(_parent: Pid) -> io::Result<()> {
    Ok(())
}
