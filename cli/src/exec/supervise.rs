//! Watches a command and its lease at the same time; the first to end decides.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use leasehold::{Lease, ffi};
use rustix::process::Signal;

use super::Exec;
use super::command::Running;
use super::inbox::Event;
use super::terminal::Terminal;
use crate::args::OnLost;
use crate::output::seconds;

/// The longest single wait, because waiting does not count the time that a machine is suspended.
const LONGEST_NAP: Duration = Duration::from_secs(1);
/// The interval of checks for the rest of the group, whose end is not reported.
const GLANCE: Duration = Duration::from_millis(10);
/// The time limit for the end of killed processes. Only a process that hangs in the kernel takes longer.
const GLANCES_AFTER_KILL: u32 = 100;

const UNTOUCHABLE: &str =
    "the command could not be killed, because it runs as another user (sudo, setuid): it goes on without the lock";

/// The result of a supervised command.
pub(super) enum Ending {
    /// The command ended by itself, with this status.
    Command(io::Result<u8>),
    /// The lease was lost or in danger before.
    Endangered,
}

/// The strongest signal that the command was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Push {
    None,
    /// It was told to end.
    Term,
    Kill,
}

pub(super) struct Supervisor<'a> {
    exec: &'a Exec<'a>,
    lease: &'a Lease,
    /// The command is killed when no more than this much of the lease is left.
    margin: Duration,
    command: Running,
    terminal: Terminal,
    push: Push,
    /// It could not be killed, and a message has said so.
    untouchable: bool,
    lost: bool,
    /// leasehold should stop with the command; a CONT continues both.
    stopping: bool,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(exec: &'a Exec<'a>, lease: &'a Lease, command: Running, terminal: Terminal) -> Self {
        let margin = margin(exec.job.hold.ttl());
        Self {
            exec,
            lease,
            margin,
            command,
            terminal,
            push: Push::None,
            untouchable: false,
            lost: false,
            stopping: false,
        }
    }

    /// Returns when the command has ended and, if the lease ended first, all of its group.
    pub(super) fn run(mut self) -> Ending {
        loop {
            let nap = self.watch_lease();
            match self.exec.inbox.next(nap) {
                Some(Event::Ended) => break,
                Some(event) => self.handle(event),
                None => self.stop_was_refused(),
            }
        }
        // First of all: the command may have outlived the lease while leasehold was stopped.
        self.watch_lease();
        let group = self.command.group();
        let ended = self.command.reap();
        if self.push > Push::None {
            self.sweep();
        }
        self.command.dismiss();
        self.terminal.take_back(group);
        if self.lost || self.push > Push::None { Ending::Endangered } else { Ending::Command(ended) }
    }

    /// Takes the action that the lease demands now, and returns the longest time to the next check.
    fn watch_lease(&mut self) -> Duration {
        // After a revoke nobody else has the lock before that is over.
        let left = self.lease.protected_for();
        let lost_now = self.lease.remaining().is_zero() && !self.lost;
        self.lost |= lost_now;
        if lost_now && self.exec.job.hold.on_lost == OnLost::Ignore {
            self.tell_loss("the command goes on");
        }
        if self.exec.job.hold.on_lost == OnLost::Ignore || self.push == Push::Kill {
            return LONGEST_NAP;
        }
        if left > self.margin {
            if lost_now {
                self.revoked(left);
            }
            return (left - self.margin).min(LONGEST_NAP);
        }
        self.push = Push::Kill;
        let follows = self.kill();
        if self.lost {
            self.tell_loss(follows);
        } else {
            self.say(format_args!("the lease has {} left{}; {follows}", seconds(left), self.trouble()));
        }
        LONGEST_NAP
    }

    /// The command has what is left of the ttl to end.
    fn revoked(&mut self, left: Duration) {
        let left = seconds(left);
        // A refused signal is reported when the command is to be killed.
        let told = if self.push == Push::None && self.pass_on(Signal::TERM) { "was told to end" } else { "ends" };
        self.push = Push::Term;
        self.tell_loss(&format!("the command {told}, and is killed in {left}"));
    }

    /// Kills the command, and returns the message about it.
    fn kill(&mut self) -> &'static str {
        self.untouchable = !self.command.signal(Signal::KILL);
        if self.untouchable { UNTOUCHABLE } else { "the command was killed" }
    }

    /// Why the last renewal failed, as an addition to a message; empty while none has.
    fn trouble(&self) -> String {
        ffi::renewal_fault(self.lease).map(|fault| format!(" (no renewal has succeeded: {fault})")).unwrap_or_default()
    }

    fn tell_loss(&self, follows: &str) {
        match self.lease.check(Duration::ZERO) {
            Err(error) => self.exec.messages.say(format_args!("{error} ({follows})")),
            Ok(()) => self.say(format_args!("the lease is lost ({follows})")),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal(Signal::CONT) => self.resume(),
            Event::Signal(signal) => {
                self.pass_on(signal);
            }
            Event::Stopped(signal) => self.stopped(signal),
            Event::Expiring => self.expiring(),
            // Checked before each event, and after the last.
            Event::Lost | Event::Ended | Event::Wake => {}
        }
    }

    /// Signals the command. Returns if that was possible.
    fn pass_on(&self, signal: Signal) -> bool {
        let passed = self.command.signal(signal);
        // A stopped command could not react, and its stop may not have been reported yet.
        if [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal) {
            self.command.signal(Signal::CONT);
        }
        passed
    }

    fn expiring(&mut self) {
        let left = self.lease.remaining();
        if left.is_zero() || self.push > Push::None {
            return;
        }
        let left = seconds(left);
        if self.exec.job.hold.on_lost == OnLost::Ignore {
            self.say(format_args!("the lease ends in {left} unless a renewal succeeds{}", self.trouble()));
            return;
        }
        self.push = Push::Term;
        // A refused signal is reported when the command is to be killed.
        if self.pass_on(Signal::TERM) {
            self.say(format_args!("the lease ends in {left}{}; the command was told to end", self.trouble()));
        }
    }

    fn stopped(&mut self, signal: Signal) {
        if self.command.went_on() {
            return;
        }
        let group = self.command.group();
        let wants_terminal = signal == Signal::TTIN || signal == Signal::TTOU;
        if wants_terminal && self.terminal.lend(group) {
            self.command.signal(Signal::CONT);
            return;
        }
        let had_terminal = self.terminal.is_with(group);
        if signal == Signal::STOP && !had_terminal {
            self.say("the command was stopped; the lock stays held and is renewed");
            return;
        }
        // A shell waits for leasehold, not for the command: without this, Ctrl-Z would leave a terminal without a
        // reader.
        self.terminal.take_back(group);
        let left = seconds(self.lease.remaining());
        self.exec.messages.say_first(
            self.about(format_args!("stopped with its command; nothing renews the lease, which ends in {left}")),
        );
        self.stopping = true;
        if let Err(error) = self.exec.signals.stop_process() {
            self.say(format_args!("cannot stop with the command: {error}"));
        }
    }

    /// Continues the command, unless its lease has ended.
    fn resume(&mut self) {
        self.watch_lease();
        if self.push == Push::Kill {
            return;
        }
        self.stopping = false;
        self.terminal.lend_again(self.command.group());
        self.command.signal(Signal::CONT);
    }

    /// No CONT came after leasehold should have stopped. So it did not stop, because there is no process that could
    /// continue it; then the command must not stay stopped either.
    fn stop_was_refused(&mut self) {
        if self.stopping {
            self.resume();
        }
    }

    fn say(&self, what: impl Display) {
        self.exec.messages.say(self.about(what));
    }

    fn about(&self, what: impl Display) -> String {
        format!("{:?}: {what}", self.exec.job.resource)
    }

    /// The command has ended, but others of its group may still work. They have time until the margin.
    fn sweep(&mut self) {
        let mut glances = 0;
        while self.command.has_remains() && glances < GLANCES_AFTER_KILL {
            let nap = self.watch_lease().min(GLANCE);
            if let Some(event) = self.exec.inbox.next(nap) {
                self.handle(event);
            } else if self.push == Push::Kill {
                glances += 1;
            }
        }
        if self.command.has_remains() && !self.untouchable {
            self.say(
                "processes of the command could not be killed, because they run as another user or hang in the \
                      kernel: they go on without the lock",
            );
        }
    }
}

/// The time between the order to end and this margin is for winding up. The rest is for a busy machine to kill the
/// group.
fn margin(ttl: Duration) -> Duration {
    (ttl / 24).clamp(Duration::from_millis(10), Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_lies_within_the_danger_zone() {
        for ms in [100, 600, 1_000, 30_000, 86_400_000] {
            let ttl = Duration::from_millis(ms);
            assert!(margin(ttl) >= Duration::from_millis(10) && margin(ttl) < ttl / 6, "{ttl:?}");
        }
    }
}
