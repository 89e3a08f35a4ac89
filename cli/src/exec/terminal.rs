//! Passes the terminal between leasehold's process group and the command's.
//!
//! Only the group in the foreground may read from a terminal, and Ctrl-C and Ctrl-Z reach only that group. A command
//! that is alone on the terminal gets the foreground at once. In a pipeline or a script it gets it when it asks for it,
//! or the others could not go on.

use std::fs::File;
use std::io::{self, IsTerminal};

use rustix::process::{Pid, getpid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::signals;

pub(super) struct Terminal {
    tty: Option<File>,
    /// The command has had the foreground, so it gets it again when leasehold has it.
    wanted: bool,
}

impl Terminal {
    pub(super) fn open() -> Self {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok();
        let alone = own_group() == Some(getpid()) && io::stdin().is_terminal() && io::stdout().is_terminal();
        let mut terminal = Self { tty, wanted: false };
        terminal.wanted = alone && terminal.is_ours();
        terminal
    }

    /// The terminal that the command should take before it starts.
    pub(super) fn for_command(&self) -> Option<&File> {
        self.tty.as_ref().filter(|_| self.wanted)
    }

    /// Tells if leasehold's group is in the foreground.
    fn is_ours(&self) -> bool {
        own_group().is_some_and(|group| self.is_with(group))
    }

    /// Tells if `group` is in the foreground.
    pub(super) fn is_with(&self, group: Pid) -> bool {
        self.foreground() == Some(group)
    }

    /// Gives the foreground to a command that asks for it, if leasehold has it.
    pub(super) fn lend(&mut self, group: Pid) -> bool {
        if !self.is_ours() {
            return false;
        }
        self.wanted = true;
        self.set(group)
    }

    /// As [`Terminal::lend`], for a command that had it before.
    pub(super) fn lend_again(&mut self, group: Pid) {
        if self.wanted {
            self.lend(group);
        }
    }

    /// Takes the foreground back, unless another group has got it meanwhile.
    pub(super) fn take_back(&self, group: Pid) {
        if self.is_with(group) {
            self.set_ours();
        }
    }

    /// Takes the foreground back from a command that took it and could not start.
    pub(super) fn reclaim(&self) {
        if self.wanted {
            self.set_ours();
        }
    }

    fn set_ours(&self) {
        if let Some(group) = own_group() {
            self.set(group);
        }
    }

    fn foreground(&self) -> Option<Pid> {
        self.tty.as_ref().and_then(|tty| tcgetpgrp(tty).ok())
    }

    /// The system sends TTOU to a background process that does this; this thread blocks it.
    fn set(&self, group: Pid) -> bool {
        self.tty.as_ref().is_some_and(|tty| tcsetpgrp(tty, group).is_ok())
    }
}

/// The group of this process; none in a pid namespace that was entered without a new group, as by `unshare` and `nsenter`.
fn own_group() -> Option<Pid> {
    // SAFETY: only reads the number, which is 0 there. rustix's own function takes 0 for a bug.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Takes the foreground. The command's process itself does it between fork and exec, so that the command starts in the
/// foreground.
pub(super) fn take_for_self(tty: &File) {
    let mask = signals::block(libc::SIGTTOU);
    // A terminal that is not available now can still be lent later.
    let _ = tcsetpgrp(tty, getpid());
    signals::restore(&mask);
}
