//! Who has the terminal: leasehold's process group, or the command's.
//!
//! Only the group in the foreground may read from a terminal, and Ctrl-C and Ctrl-Z reach that group alone. A command
//! that is the only thing on the terminal gets the foreground at once. Beside others, in a pipeline or a script, it gets
//! it when it asks, or those others could not go on.

use std::fs::File;
use std::io::{self, IsTerminal};

use rustix::process::{Pid, getpgrp, getpid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::signals;

pub(super) struct Terminal {
    tty: Option<File>,
    /// The command has had the foreground, so it gets it again when leasehold is back there.
    wanted: bool,
}

impl Terminal {
    pub(super) fn open() -> Self {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok();
        let alone = getpgrp() == getpid() && io::stdin().is_terminal() && io::stdout().is_terminal();
        let mut terminal = Self { tty, wanted: false };
        terminal.wanted = alone && terminal.is_ours();
        terminal
    }

    /// The terminal that the command should take before it starts.
    pub(super) fn for_command(&self) -> Option<&File> {
        self.tty.as_ref().filter(|_| self.wanted)
    }

    /// Whether leasehold's group is in the foreground.
    fn is_ours(&self) -> bool {
        self.foreground() == Some(getpgrp())
    }

    /// Whether `group` is in the foreground.
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

    /// As [`Terminal::lend`], to a command that had it before.
    pub(super) fn lend_again(&mut self, group: Pid) {
        if self.wanted {
            self.lend(group);
        }
    }

    /// Takes the foreground back, unless it went to somebody else meanwhile.
    pub(super) fn take_back(&self, group: Pid) {
        if self.is_with(group) {
            self.set(getpgrp());
        }
    }

    /// Takes the foreground back from a command that took it and could not start.
    pub(super) fn reclaim(&self) {
        if self.wanted {
            self.set(getpgrp());
        }
    }

    fn foreground(&self) -> Option<Pid> {
        self.tty.as_ref().and_then(|tty| tcgetpgrp(tty).ok())
    }

    /// The system answers whoever does this from the background with TTOU, which this thread blocks.
    fn set(&self, group: Pid) -> bool {
        self.tty.as_ref().is_some_and(|tty| tcsetpgrp(tty, group).is_ok())
    }
}

/// Run by the command's process itself between fork and exec, so that it cannot look before it has the foreground.
pub(super) fn take_for_self(tty: &File) {
    let mask = signals::block(libc::SIGTTOU);
    // A terminal that cannot be had now can still be lent later.
    let _ = tcsetpgrp(tty, getpid());
    signals::restore(&mask);
}
