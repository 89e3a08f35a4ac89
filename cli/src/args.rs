//! The arguments, and the help that explains them.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{duration, status};

/// Run a job under a lock, show a lock's holder, check a store.
///
/// A lock is a lease: it is granted for a limited time (the ttl), renewed in the background, and ends by itself when
/// its holder dies. Every grant has a fencing token, a number that only grows, so that the protected resource can
/// reject late writes of a former holder.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_long_help = MAIN_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that are accepted before and after the command's name. As global arguments, the second of two would
/// silently win.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store of the locks, such as sqlite:/var/lib/app/locks.db; repeat it for the nodes of a quorum
    ///
    /// sqlite:PATH serves all processes of one machine; a missing file is created. redis://HOST serves many machines, as
    /// do upstash+https://:TOKEN@HOST, webdis+http://HOST and dynamodb://TABLE?region=REGION. Without --store the
    /// environment variable LEASEHOLD_STORE is used. Without that, a file in your state folder
    /// (~/.local/state/leasehold/locks.db) is used, with a warning: only your own processes on this machine see its
    /// locks. LEASEHOLD_REQUIRE_STORE=1 makes this an error. Several --store options, or several urls in
    /// LEASEHOLD_STORE, are the independent nodes of a quorum: a majority of them grants a lock, so a minority may fail.
    #[arg(long = "store", value_name = "URL")]
    pub urls: Vec<String>,
    /// For a quorum: the longest ttl of its locks [default: the one that most nodes remember, or else 60s]
    ///
    /// Without it, the environment variable LEASEHOLD_MAX_TTL is used. A single store has no such setting, and ignores
    /// the variable.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub max_ttl: Option<Duration>,
    /// For a quorum: its id [default: derived from the names of its nodes]
    ///
    /// Without it, the environment variable LEASEHOLD_QUORUM_ID is used, except for a single store.
    #[arg(long, value_name = "ID")]
    pub quorum_id: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a lock
    ///
    /// The command's environment has LEASEHOLD_RESOURCE, LEASEHOLD_TOKEN and LEASEHOLD_STORE (the store as it was given,
    /// secrets included), and for a quorum also LEASEHOLD_MAX_TTL and LEASEHOLD_QUORUM_ID, if they were set. It runs in a
    /// process group of its own. HUP, INT, QUIT, TERM, USR1, USR2, TSTP and CONT are passed on to that group; signals
    /// that were ignored at the start stay ignored.
    #[command(after_long_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Show the holder of a lock: since when, with which token, and the time left
    ///
    /// The answer is out of date when it arrives: use it for information, never for decisions.
    #[command(after_long_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Take a lock from its holder, after asking
    ///
    /// The last resort, for a holder that is known to be dead, or that must give way before its ttl ends. If the holder
    /// still works, two work from now on: it learns of its loss only at its next renewal. The token is kept, so the next
    /// holder gets a larger one, and a protected resource that checks tokens rejects the former holder.
    #[command(after_long_help = BREAK_HELP)]
    Break(BreakArgs),
    /// Check a store, and show problems with advice
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Make a quorum of several stores, show which of its nodes vote, or wait until they do
    Quorum(QuorumArgs),
    /// Create a DynamoDB table for locks, or show one
    Table(TableArgs),
    /// Print a completion script for a shell
    #[command(after_long_help = COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
}

impl Command {
    /// The stores that were named after the command.
    pub(crate) const fn store(&self) -> Option<&StoreArgs> {
        match self {
            Self::Exec(args) => Some(&args.store),
            Self::Inspect(args) => Some(&args.store),
            Self::Break(args) => Some(&args.store),
            Self::Doctor(args) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Init(args) }) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Status(args) }) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Join(args) }) => Some(&args.store),
            Self::Table(TableArgs { action: TableAction::Create(args) }) => Some(&args.store),
            Self::Table(TableArgs { action: TableAction::Describe(args) }) => Some(&args.store),
            Self::Completions(_) => None,
        }
    }

    /// Tells if the answer is for machines.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Inspect(args) => args.json,
            Self::Break(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Init(args) }) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Status(args) }) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Join(args) }) => args.json,
            Self::Table(TableArgs { action: TableAction::Create(args) }) => args.json,
            Self::Table(TableArgs { action: TableAction::Describe(args) }) => args.json,
            Self::Exec(_) | Self::Completions(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lifetime of the lease without renewal: 100ms to 24h
    ///
    /// leasehold renews it after a third of that. If leasehold is killed or its machine dies, others wait that long; if
    /// the store cannot be reached for that long, the lease is lost.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    #[arg(allow_hyphen_values = true)]
    pub ttl: Duration,
    /// The longest wait for the lock [default: for ever]
    ///
    /// A store that cannot be reached is retried for as long. Without --wait, such a store ends leasehold at once. On a
    /// terminal, a message names the holder after a wait of 1s.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    /// Try once and do not wait; the same as --wait 0s
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// The holder's label that others see: at most 256 bytes [default: host:pid:thread]
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
    /// Stop renewing this long after the grant: at least the ttl
    ///
    /// So a command that hangs cannot hold the lock for ever: its lease ends, and the command with it. Off by default.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub max_hold: Option<Duration>,
    /// The action when the lease is lost
    #[arg(long, value_name = "ACTION", default_value = "term")]
    pub on_lost: OnLost,
    /// Exit status if the lock could not be acquired; with 0, there is no message either
    #[arg(long, value_name = "STATUS", default_value_t = status::BUSY)]
    pub busy_status: u8,
    /// Exit status if the lease was lost or in danger
    #[arg(long, value_name = "STATUS", default_value_t = status::LOST)]
    pub lost_status: u8,
    /// The name of the lock: 1 to 1024 bytes, no control characters
    pub resource: String,
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl ExecArgs {
    /// The time limit for the lock; `None` waits for ever.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait }
    }
}

/// The action when the lease is lost.
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
    /// Only if its holder has this fencing token, as `leasehold inspect` shows it
    ///
    /// Each grant has its own token, so a later holder keeps the lock.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<u64>,
    /// Only if its holder has this label; * stands for any characters
    ///
    /// With default labels, 'worker-7:1234:*' matches every thread of process 1234 on the machine worker-7.
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
    /// Do not ask; needed without a terminal
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
pub(crate) struct QuorumArgs {
    #[command(subcommand)]
    pub action: QuorumAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuorumAction {
    /// Mark new stores as the nodes of a quorum
    ///
    /// Each node remembers its quorum. So a node that has lost its data is recognised, and does not vote until all leases
    /// that it may have forgotten have expired. Without this command a new quorum comes up by itself, but only once all
    /// of its nodes answer, and for a client that stays a little longer than the longest ttl.
    #[command(after_long_help = INIT_HELP)]
    Init(InitArgs),
    /// Show which nodes answer, vote or abstain, with explanations
    #[command(after_long_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Wait until every reachable node votes
    ///
    /// A node that has lost its memory votes again once one client has stayed a little longer than the longest ttl, and
    /// then asked it. Programs that hold or wait for locks that long do this by themselves; if all clients are
    /// short-lived, such as cron jobs, run this after a loss. A new quorum without marks comes up in the same way, if all
    /// of its nodes answer. It takes the lock leasehold:join, and several may join at once.
    #[command(after_long_help = JOIN_HELP)]
    Join(JoinArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Mark all nodes that answer, even if they remember a quorum; use it only while no lock is held
    #[arg(long)]
    pub force: bool,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The longest wait [default: twice the longest ttl, and 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    pub action: TableAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TableAction {
    /// Create the table that the store's url names, unless it exists
    ///
    /// Its keys are those of the url, by default `key`. If the url has expires=ATTRIBUTE, DynamoDB's time to live is
    /// enabled for that attribute. The command ends once the table can be used, after 5 minutes at most. An existing
    /// table keeps its billing and its tags.
    #[command(after_long_help = CREATE_HELP)]
    Create(CreateArgs),
    /// Show a table: its keys, its billing, the consistency of its replicas
    #[command(after_long_help = DESCRIBE_HELP)]
    Describe(DescribeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Pay for this many reads per second, each consistent and of up to 4 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "write_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub read_units: Option<u64>,
    /// Pay for this many writes per second, each of up to 1 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "read_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub write_units: Option<u64>,
    /// A tag of the table; repeat it for more
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write NAME=VALUE, such as team=billing".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const MAIN_HELP: &str = "\
Durations have a unit: 500ms, 30s, 1.5s, 2m, 1h.

Environment, where the option is not given:
  LEASEHOLD_STORE          --store; several urls separated by spaces
  LEASEHOLD_REQUIRE_STORE  1: a store must be named, there is no default
  LEASEHOLD_MAX_TTL        --max-ttl, if there are several stores
  LEASEHOLD_QUORUM_ID      --quorum-id, if there are several stores

Examples:
  export LEASEHOLD_STORE=redis://locks.example.com
  leasehold exec nightly -- ./report.sh    run one at a time
  leasehold inspect nightly                show the holder
  leasehold doctor                         check the store

Exit status, for every command:
   64  wrong arguments, url or name
   69  the store cannot be reached or does not answer
   70  an internal error: no thread could be started, or a bug
   71  the operating system refuses a thread, a pipe or a process
   74  the answer cannot be written
   77  the store refuses: permissions, a full disk, a record it cannot read
See `leasehold help COMMAND` for those of a command.
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
   75  the lock could not be acquired: it was held, or not free within the wait
       (--busy-status)
   76  the lease was lost or in danger, or the lock was found broken when the
       command had ended (--lost-status)
  126  the command cannot be executed; the lock was released at once
  127  the command was not found; the lock was released at once
128+N  signal N came while waiting for the lock
and 64, 69, 70, 71, 77 as in `leasehold --help`. Whenever leasehold ends with a
status of its own, a line on stderr that begins with `leasehold:` explains it.

When the lease is lost:
  When less than a sixth of the ttl is left and no renewal has succeeded, the
  command's process group gets TERM. When 1/24 of the ttl is left (at least
  10ms, at most 1s), or the lease ends early because the lock was broken, it
  gets KILL. So does the rest of the group after the command has ended.
  With --on-lost ignore the command goes on beside the next holder, and its own
  status counts; there is a warning.
  If leasehold itself is killed, the command's group is killed too, and the lock
  is free when the ttl has passed.

Stopping:
  Ctrl-Z stops the command and leasehold. A stopped leasehold renews nothing:
  the lease expires after the ttl, others may get the lock, and on `fg` the
  command is killed instead of continued. If only the command is stopped, by
  `kill -STOP`, the lock stays held; --max-hold bounds that.

Not guaranteed:
  - While leasehold itself is stopped or starved, or KILL has not yet reached a
    command that hangs in the kernel, the command can write after its lease has
    ended. Only the protected resource can reject that, by comparing
    LEASEHOLD_TOKEN with the largest token it has seen.
  - A command that runs as another user cannot be signalled: sudo, su, setuid
    programs. It goes on when the lease is lost (a message says so) or leasehold
    is killed. Run `sudo leasehold exec` instead.
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

JSON: resource, held, store (its url, or several separated by spaces; files by
their full paths); if held also owner, token, since (RFC 3339), since_unix_ms,
ttl_ms, left_ms (until the lock is free unless renewed), data_bytes, foreign
(written by another lock library), nodes: votes, of (the number of nodes that
show it; 1 of 1 for a single store). Values that the store does not show are
null. A failure is {\"error\": {\"kind\", \"message\"}}.
";

const BREAK_HELP: &str = "\
Examples:
  leasehold break nightly
      show the holder, ask, and take the lock from that holder
  leasehold break --token 1727695801234 --yes nightly
      in a script that has inspected the lock: only this lease
  leasehold break --owner 'worker-7:1234:*' --yes nightly
      in a supervisor that knows that this process has died

Comparing and releasing is one step: a holder that comes in between keeps the
lock. The lock of another library is refused (77): release it with that
library's own tools.

Exit status:
    0  the lock was taken from its holder
    1  the lock was free already
    2  nothing was changed: not confirmed, held by another holder than the named
       one, or the lock changed hands while you were asked
and 64 (also: no terminal to ask on, and no --yes), 69, 70, 74, 77 as in
`leasehold --help`.

JSON: resource, broken (true or false), holder (as in `leasehold inspect
--json`, or null). A failure is {\"error\": {\"kind\", \"message\"}}.
";

const DOCTOR_HELP: &str = "\
Exit status:
    0  all is good
    1  warnings, and nothing worse
    2  a problem: locks are not reliable, or do not work at all; also if the
       store cannot be opened
and 64 (an empty --store), 74 as in `leasehold --help`.

With several --store, the nodes of a quorum are checked one by one and against
each other.

JSON: store (as in `leasehold inspect --json`; null if it cannot be read), worst
(good, warning or problem), findings: severity, check, what, advice.
";

const INIT_HELP: &str = "\
Example:
  leasehold quorum init --store redis://a --store redis://b --store redis://c

Exit status:
    0  the nodes are members now, or were before
    1  nothing was done: the quorum exists, or is coming up, and nodes that do
       not vote yet come back by themselves
and 64 (also: a node is marked otherwise), 69, 74, 77 as in `leasehold --help`.

With --force all nodes vote at once. If a client holds a lock meanwhile, or
believes that it does, two may hold it. After a change of nodes or of
--max-ttl: stop all clients, wait for the longest ttl, then use it. If a node
fails, the marks of the others are undone.

JSON: quorum, result (marked, exists, recovering or coming_up), nodes (the
number that were marked), left_out and recovering (names). A failure is
{\"error\": {\"kind\", \"message\"}}.
";

const STATUS_HELP: &str = "\
Exit status:
    0  a majority of the nodes votes
    1  it does not: no lock can be acquired
and 64, 74 as in `leasehold --help`.

JSON: quorum, max_ttl_ms, majority, voting, nodes: name, standing (member,
rejoined, joining, restarted, unmarked, stranger, unreadable, unreachable,
refused), answers, votes, quorum, max_ttl_ms, run, durable, meaning.
";

const JOIN_HELP: &str = "\
Example, after a machine of the quorum was replaced:
  leasehold quorum join --store redis://a --store redis://b --store redis://c

It reports on stderr what it waits for and until when, and any change.

Exit status:
    0  all nodes that answer vote, and they are a majority
    1  they do not after the timeout; the answer names the nodes and reasons
and 64 (also: a node is marked otherwise), 69, 74, 77 as in `leasehold --help`.

JSON: quorum, result (complete or timed_out), majority, voting, reasons, nodes
(as in `leasehold quorum status --json`). A failure is
{\"error\": {\"kind\", \"message\"}}.
";

const CREATE_HELP: &str = "\
Examples:
  leasehold table create --store 'dynamodb://locks?region=eu-west-1'
  leasehold table create --read-units 5 --write-units 5 --tag team=billing \\
      --store 'dynamodb://locks?region=eu-west-1&expires=ttl'

Exit status:
    0  the table exists, created now or before
and 64, 69, 74, 77 (also: a table of that name has other keys) as in
`leasehold --help`.

It needs dynamodb:CreateTable and DescribeTable; with --tag TagResource; with
expires in the url DescribeTimeToLive and UpdateTimeToLive.

JSON: result (made or exists), and what `leasehold table describe --json`
shows. A failure is {\"error\": {\"kind\", \"message\"}}.
";

const DESCRIBE_HELP: &str = "\
Exit status:
    0  the table can be used
    1  it exists, but cannot be used now
and 64, 69, 74, 77 (also: the table does not exist) as in `leasehold --help`.

JSON: name, status, keys (name, type), billing (mode: on_demand or provisioned;
read_units, write_units), expires (the attribute of its time to live), replicas
(Regions), consistency (strong or eventual), witnesses (Regions), arn. Values
that DynamoDB does not show, or not to us, are null. A failure is
{\"error\": {\"kind\", \"message\"}}.
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
        let of_quorums = [INIT_HELP, STATUS_HELP, JOIN_HELP];
        assert!(of_quorums.iter().all(|help| small.iter().all(|status| listed(help, *status))));
        assert!(small.iter().all(|status| listed(DESCRIBE_HELP, *status)) && listed(CREATE_HELP, status::DONE));
        let small = [status::DONE, status::NOTHING, status::NOT_DONE];
        assert!(small.iter().all(|status| listed(BREAK_HELP, *status) && listed(DOCTOR_HELP, *status)));
    }

    #[test]
    fn help_needs_no_wrapping_on_common_terminals() {
        let helps = [MAIN_HELP, EXEC_HELP, INSPECT_HELP, BREAK_HELP, DOCTOR_HELP, INIT_HELP, STATUS_HELP, JOIN_HELP];
        for help in helps.into_iter().chain([CREATE_HELP, DESCRIBE_HELP]) {
            assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        }
    }
}
