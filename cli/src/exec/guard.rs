//! A process that kills the command's group when leasehold dies suddenly.
//!
//! The system can be asked to kill a child whose parent dies, but not that child's children, and not on every system.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{getpid, setsid};

/// The first line names the group. If the input ends before a second line, leasehold is dead.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM; read -r group && { read -r line || kill -s KILL -- "-$group"; }"#;

/// Dropping it dismisses the guard: the group runs on.
pub(super) struct Guard {
    shell: Child,
    input: ChildStdin,
}

impl Guard {
    /// # Errors
    /// There is no shell, or no process can be started.
    pub(super) fn start() -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT]).env_clear().current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A session of its own: no key and no end of a terminal reaches it. This also keeps the standard library from
        // using `vfork`, under which Ctrl-Z could stop the child halfway and leave this process hanging.
        let leave = || setsid().map(drop).map_err(io::Error::from);
        // SAFETY: one system call between fork and exec.
        unsafe { shell.pre_exec(leave) };
        let mut shell = shell.spawn()?;
        match shell.stdin.take() {
            Some(input) => Ok(Self { shell, input }),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The pipe to the guard, for a process that wants to be guarded.
    ///
    /// # Errors
    /// The system is out of file descriptors.
    pub(super) fn desk(&self) -> io::Result<OwnedFd> {
        self.input.as_fd().try_clone_to_owned()
    }
}

/// Registers the calling process's group with the guard. The command's process itself does it between fork and exec, so
/// that it is never unguarded.
pub(super) fn report_to(desk: BorrowedFd<'_>) -> io::Result<()> {
    let mut line = [0; 16];
    let size = line.len();
    let mut rest = &mut line[..];
    writeln!(rest, "{}", getpid().as_raw_pid())?;
    let length = size - rest.len();
    rustix::io::write(desk, &line[..length])?;
    Ok(())
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Two lines, because a command that could not be started may not have written the first.
        let _ = self.input.write_all(b"\n\n");
        let _ = self.shell.wait();
    }
}
