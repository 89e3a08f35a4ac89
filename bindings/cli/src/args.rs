//! The arguments, and the help that explains them.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{duration, status};

/// Run a job under a lock, see who holds it, check a store.
///
/// A lock is a lease: it is granted for a while (the ttl), renewed in the background, and ends by itself when its
/// holder dies. Every grant has a fencing token, a number that only grows, so that whatever the lock protects can refuse
/// a holder that comes late.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_long_help = MAIN_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Accepted before and after the command's name. Not as one global argument, or the second of two would silently win.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store of the locks, such as sqlite:/var/lib/app/locks.db
    ///
    /// sqlite:PATH serves all processes of one machine; the file is made when it is missing. redis://HOST serves many
    /// machines; upstash+https://:TOKEN@HOST and webdis+http://HOST do over HTTP. Without --store the
    /// environment variable LEASEHOLD_STORE counts, and without that a file in your state folder
    /// (~/.local/state/leasehold/locks.db).
    #[arg(long = "store", value_name = "URL")]
    pub urls: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a lock
    ///
    /// The command finds LEASEHOLD_RESOURCE, LEASEHOLD_TOKEN and LEASEHOLD_STORE in its environment. It runs in a
    /// process group of its own. HUP, INT, QUIT, TERM, USR1, USR2, TSTP and CONT are passed on to that group; signals
    /// that were ignored at the start stay ignored.
    #[command(after_long_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Show who holds a lock: since when, with which token, and the time left
    ///
    /// The answer is old when it arrives: use it to look, never to decide.
    #[command(after_long_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Take a lock from its holder, after asking
    ///
    /// The last resort, for a holder that is known to be dead or must give way before its ttl is over. If it still works,
    /// two do from now on: it learns of its loss only with its next renewal. The token is kept, so that the next holder
    /// gets a larger one, and a protected side that checks tokens refuses the former.
    #[command(after_long_help = BREAK_HELP)]
    Break(BreakArgs),
    /// Check a store, and say what is wrong and what to do
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
}

impl Command {
    /// The stores that were named after the command.
    pub(crate) fn stores(&self) -> &[String] {
        match self {
            Self::Exec(args) => &args.store.urls,
            Self::Inspect(args) => &args.store.urls,
            Self::Break(args) => &args.store.urls,
            Self::Doctor(args) => &args.store.urls,
            Self::Completions(_) => &[],
        }
    }

    /// Whether a machine reads the answer.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Inspect(args) => args.json,
            Self::Break(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Exec(_) | Self::Completions(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// How long the lease lasts without renewal: 100ms to 24h
    ///
    /// leasehold renews it every third of that. If leasehold is killed or its machine dies, others wait that long; if
    /// the store cannot be reached for that long, the lease is lost.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    #[arg(allow_hyphen_values = true)]
    pub ttl: Duration,
    /// How long to wait for the lock; without it, for ever
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    /// Try once and do not wait; the same as --wait 0s
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// What others see as the holder: at most 256 bytes [default: host:pid:thread]
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
    /// Stop renewing this long after the grant: at least the ttl
    ///
    /// A command that hangs then cannot hold the lock for ever: its lease ends, and with it the command. Off by default.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub max_hold: Option<Duration>,
    /// What happens to the command when the lease is lost
    #[arg(long, value_name = "ACTION", default_value = "term")]
    pub on_lost: OnLost,
    /// Exit status when the lock was not had; with 0, nothing is said about it either
    #[arg(long, value_name = "STATUS", default_value_t = status::BUSY)]
    pub busy_status: u8,
    /// Exit status when the lease was lost or in danger
    #[arg(long, value_name = "STATUS", default_value_t = status::LOST)]
    pub lost_status: u8,
    /// What to lock: 1 to 1024 bytes, no control characters
    pub resource: String,
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl ExecArgs {
    /// How long to try; `None` is for ever.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait }
    }
}

/// What happens to the command when the lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM while the lease is in danger, KILL before it ends
    Term,
    /// The command goes on, and a warning is printed
    Ignore,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock
    pub resource: String,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock
    pub resource: String,
    /// Do not ask; needed where there is no terminal to ask on
    #[arg(long)]
    pub yes: bool,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const MAIN_HELP: &str = "\
Durations have a unit: 500ms, 30s, 1.5s, 2m, 1h.

Examples:
  leasehold exec nightly -- ./report.sh    one at a time on this machine
  leasehold inspect nightly                who is at it?
  leasehold doctor                         is the store in order?

Exit status, for every command:
   64  wrong arguments, url or name
   69  the store cannot be reached or does not answer
   70  a defect of leasehold
   71  the operating system refuses a thread, a pipe or a process
   74  the answer cannot be written
   77  the store refuses: permissions, a full disk, a record it cannot read
Each command's own are in its help.
";

const EXEC_HELP: &str = "\
Examples:
  leasehold exec nightly -- ./report.sh
      wait for the lock as long as it takes
  leasehold exec --no-wait --busy-status 0 sync -- rsync -a src/ dst/
      from cron: skip this round if the last one still runs
  leasehold exec --ttl 10s --wait 5m deploy -- make deploy
  leasehold exec db -- sh -c 'psql -v fence=$LEASEHOLD_TOKEN -f write.sql'

Exit status: that of the command, or 128 + N if signal N ended it, except
   75  the lock was not had: held by somebody else, or not free within the wait
       (--busy-status)
   76  the lease was lost or in danger (--lost-status)
  126  the command cannot be executed; the lock was released at once
  127  the command was not found; the lock was released at once
128+N  signal N came while waiting for the lock
and 64, 69, 70, 71, 77 as in `leasehold --help`. Whenever leasehold ends with a
status of its own, a line on stderr that begins with `leasehold:` says why.

When the lease is lost:
  When less than a sixth of the ttl is left and no renewal has succeeded, the
  command's process group gets TERM. When 1/24 of the ttl is left (at least
  10ms, at most 1s), or the lease ends early because somebody broke the lock, it
  gets KILL. So does what is left of the group after the command has ended.
  With --on-lost ignore the command goes on beside whoever has the lock next; a
  warning says so.
  If leasehold itself is killed, the command's group is killed too, and the lock
  is free when the ttl has passed.

Stopping:
  Ctrl-Z stops the command and leasehold. A stopped leasehold renews nothing:
  the lease runs out after the ttl, others may have the lock, and on `fg` the
  command is killed instead of continued. A command that is stopped alone, by
  `kill -STOP`, keeps the lock; --max-hold bounds that.

Not guaranteed:
  - While leasehold itself is stopped or starved, or KILL has not yet reached a
    command that hangs in the kernel, the command can write though its lease is
    over. Only the protected side can refuse that, by comparing LEASEHOLD_TOKEN
    with the largest token it has seen.
  - Processes that the command leaves behind when it ends are left alone, and
    the lock no longer covers them.
  - Processes that leave the command's process group (setsid, daemons) are not
    reached by any of the above.
  - Waiters are not served in order.
";

const INSPECT_HELP: &str = "\
Exit status:
    0  the lock is held
    1  the lock is free
and 64, 69, 70, 74, 77 as in `leasehold --help`.

JSON: resource, held; if held also owner, token, since (RFC 3339),
since_unix_ms, ttl_ms, left_ms (until the lock is free unless renewed),
data_bytes, foreign (written by another lock library). What the store does not
show is null. A failure is {\"error\": {\"kind\", \"message\"}}.
";

const BREAK_HELP: &str = "\
Exit status:
    0  the lock was taken from its holder
    1  the lock was free already
    2  not confirmed, or the lock changed hands while you were asked; nothing
       was changed
and 64 (also: no terminal to ask on, and no --yes), 69, 70, 74, 77 as in
`leasehold --help`.

JSON: resource, broken (true or false), holder (as in `leasehold inspect
--json`, or null). A failure is {\"error\": {\"kind\", \"message\"}}.
";

const DOCTOR_HELP: &str = "\
Exit status:
    0  all is good
    1  warnings, and nothing worse
    2  a problem: locks cannot be relied on, or do not work at all; that the
       store cannot be opened is one
and 64 (--store twice, or empty), 74 as in `leasehold --help`.

JSON: store (null if its url cannot be read), worst (good, warning or problem),
findings: severity, check, what, advice.
";

const COMPLETIONS_HELP: &str = "\
Examples:
  leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold
  leasehold completions fish > ~/.config/fish/completions/leasehold.fish
  leasehold completions zsh  > \"${fpath[1]}/_leasehold\"
";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_lists_the_statuses_that_are_used() {
        let listed = |help: &str, status: u8| help.lines().any(|line| line.starts_with(&format!("{status:>5}  ")));
        let main =
            [status::USAGE, status::UNAVAILABLE, status::INTERNAL, status::SYSTEM, status::OUTPUT, status::REFUSED];
        assert!(main.iter().all(|status| listed(MAIN_HELP, *status)));
        let exec = [status::BUSY, status::LOST, status::NOT_EXECUTABLE, status::NOT_FOUND];
        assert!(exec.iter().all(|status| listed(EXEC_HELP, *status)));
        assert!(EXEC_HELP.contains(&format!("{}+N", status::SIGNAL)));
        let small = [status::DONE, status::NOTHING];
        assert!(small.iter().all(|status| listed(INSPECT_HELP, *status)));
        let small = [status::DONE, status::NOTHING, status::NOT_DONE];
        assert!(small.iter().all(|status| listed(BREAK_HELP, *status) && listed(DOCTOR_HELP, *status)));
    }

    #[test]
    fn help_needs_no_wrapping_on_common_terminals() {
        for help in [MAIN_HELP, EXEC_HELP, INSPECT_HELP, BREAK_HELP, DOCTOR_HELP] {
            assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        }
    }
}
