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
    /// The store of the locks, such as sqlite:/var/lib/app/locks.db; several times for the nodes of a quorum
    ///
    /// sqlite:PATH serves all processes of one machine; the file is made when it is missing. redis://HOST serves many
    /// machines; upstash+https://:TOKEN@HOST and webdis+http://HOST do over HTTP, and so does
    /// dynamodb://TABLE?region=REGION. Without --store the environment variable LEASEHOLD_STORE counts, and without that a
    /// file in your state folder (~/.local/state/leasehold/locks.db), of which a warning is printed: only your own
    /// processes on this machine see its locks. LEASEHOLD_REQUIRE_STORE=1 refuses instead. Given several times, or with several urls in LEASEHOLD_STORE, the
    /// stores form a quorum of independent nodes: a majority of them grants a lock, so that a minority may fail.
    #[arg(long = "store", value_name = "URL")]
    pub urls: Vec<String>,
    /// For a quorum: the longest ttl of its locks [default: what most nodes remember, or else 60s]
    ///
    /// Without it, the environment variable LEASEHOLD_MAX_TTL counts. One store alone has no such setting, and the
    /// variable is not read for it.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub max_ttl: Option<Duration>,
    /// For a quorum: what its nodes know it by [default: follows from their names]
    ///
    /// Without it, the environment variable LEASEHOLD_QUORUM_ID counts, except for one store alone.
    #[arg(long, value_name = "ID")]
    pub quorum_id: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a lock
    ///
    /// The command finds LEASEHOLD_RESOURCE, LEASEHOLD_TOKEN and LEASEHOLD_STORE in its environment, the store as it was given,
    /// secrets too; of a quorum also LEASEHOLD_MAX_TTL and LEASEHOLD_QUORUM_ID, where they were set. It runs in a process group of its own. HUP, INT, QUIT, TERM, USR1, USR2, TSTP and CONT are passed on to that group; signals
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
    /// Make a quorum of several stores, see which of its nodes vote, or wait until they do
    Quorum(QuorumArgs),
    /// Make a DynamoDB table for locks, or look at one
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

    /// Whether a machine reads the answer.
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
    /// How long the lease lasts without renewal: 100ms to 24h
    ///
    /// leasehold renews it every third of that. If leasehold is killed or its machine dies, others wait that long; if
    /// the store cannot be reached for that long, the lease is lost.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    #[arg(allow_hyphen_values = true)]
    pub ttl: Duration,
    /// How long to wait for the lock; without it, for ever
    ///
    /// For as long, a store that cannot be reached is tried again. Without it, such a store ends leasehold at once. On a
    /// terminal, a wait of more than 1s says who holds the lock.
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
    /// Only if its holder has this fencing token, as `leasehold inspect` shows it
    ///
    /// Each grant has its own token, so that a later holder is left alone.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<u64>,
    /// Only if this is the label of its holder; * stands for any characters
    ///
    /// 'worker-7:1234:*' is every thread of process 1234 on the machine worker-7, where labels are the default ones.
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
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
pub(crate) struct QuorumArgs {
    #[command(subcommand)]
    pub action: QuorumAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuorumAction {
    /// Mark new stores as the nodes of a quorum
    ///
    /// Each node remembers which quorum it belongs to; one that has lost its data is told by that, and does not vote until
    /// all leases are over that it may have forgotten. Without this command a new quorum comes up by itself, but only once
    /// all of its nodes answer, and for a client that stays for a little more than the longest ttl.
    #[command(after_long_help = INIT_HELP)]
    Init(InitArgs),
    /// Show which nodes answer, vote, or abstain, and what that means
    #[command(after_long_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Stay until all nodes vote that answer
    ///
    /// A node that has lost its memory votes again once one client has stayed for a little more than the longest ttl, and
    /// asked it then. Programs that hold or want locks for that long do so by the way; where all are short, such as jobs
    /// of cron, run this after a loss. A new quorum that nobody has marked comes up in the same way, if all of its
    /// nodes answer. It takes the lock leasehold:join, and several may join at once.
    #[command(after_long_help = JOIN_HELP)]
    Join(JoinArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Mark all nodes that answer, whatever they remember; only while nobody holds a lock
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
    /// How long to stay at most [default: twice the longest ttl, and 30s]
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
    /// Make the table that the store's url names, unless it is there
    ///
    /// Its keys are those that the url names, `key` unless it says otherwise. Where the url has expires=ATTRIBUTE,
    /// DynamoDB's time to live is switched on for that attribute. The command ends once the table can be used, after
    /// 5 minutes at most. A table that was there keeps its billing and its tags.
    #[command(after_long_help = CREATE_HELP)]
    Create(CreateArgs),
    /// Show a table: its keys, how it is paid for, what its replicas promise
    #[command(after_long_help = DESCRIBE_HELP)]
    Describe(DescribeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Pay for so many reads in a second, each consistent and of up to 4 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "write_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub read_units: Option<u64>,
    /// Pay for so many writes in a second, each of up to 1 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "read_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub write_units: Option<u64>,
    /// A tag of the table, for people and bills; several times for several
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
  LEASEHOLD_STORE          --store, several urls with spaces in between
  LEASEHOLD_REQUIRE_STORE  1: no store is taken that nobody has named
  LEASEHOLD_MAX_TTL        --max-ttl, if there are several stores
  LEASEHOLD_QUORUM_ID      --quorum-id, if there are several stores

Examples:
  export LEASEHOLD_STORE=redis://locks.example.com
  leasehold exec nightly -- ./report.sh    one at a time
  leasehold inspect nightly                who is at it?
  leasehold doctor                         is the store in order?

Exit status, for every command:
   64  wrong arguments, url or name
   69  the store cannot be reached or does not answer
   70  an internal error: no thread could be started, or a bug
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
   76  the lease was lost or in danger, or the lock was found broken when the
       command had ended (--lost-status)
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
  With --on-lost ignore the command goes on beside the next holder, and its own
  status counts; a warning says so.
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
  - A command that runs as another user cannot be signalled: sudo, su, setuid
    programs. It goes on when the lease is lost or leasehold is killed; for a
    lost lease a message says so. Run `sudo leasehold exec` instead.
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

JSON: resource, held, store (its url, or several with spaces in between; files
by their whole paths); if held also owner, token, since (RFC 3339),
since_unix_ms, ttl_ms, left_ms (until the lock is free unless renewed),
data_bytes, foreign (written by another lock library), nodes: votes, of (how
many nodes show it; 1 of 1 for one store alone). What the store does not show is
null. A failure is {\"error\": {\"kind\", \"message\"}}.
";

const BREAK_HELP: &str = "\
Examples:
  leasehold break nightly
      show the holder, ask, and take the lock from that holder
  leasehold break --token 1727695801234 --yes nightly
      for a script that has looked before: only this lease
  leasehold break --owner 'worker-7:1234:*' --yes nightly
      for a supervisor that knows that this process has died

What is compared is also what is released: a holder that comes in between keeps
the lock. The lock of another library is refused (77): release it with that
library's own tools.

Exit status:
    0  the lock was taken from its holder
    1  the lock was free already
    2  not confirmed, held by another holder than the one that was named, or the
       lock changed hands while you were asked; nothing was changed
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

With --force nodes forget what keeps them from voting. If somebody holds a lock
meanwhile, or believes to, two may hold it. After a change of nodes or of
--max-ttl: stop all clients, wait for the longest ttl, then use it. Where a
node fails, the marks of the others are taken back.

JSON: quorum, result (marked, exists, recovering or coming_up), nodes (how many
were marked), left_out and recovering (names). A failure is
{\"error\": {\"kind\", \"message\"}}.
";

const STATUS_HELP: &str = "\
Exit status:
    0  a majority of the nodes votes
    1  it does not: no lock can be had
and 64, 74 as in `leasehold --help`.

JSON: quorum, max_ttl_ms, majority, voting, nodes: name, standing (member,
rejoined, joining, restarted, unmarked, stranger, unreadable, unreachable,
refused), answers, votes, quorum, max_ttl_ms, run, durable, meaning.
";

const JOIN_HELP: &str = "\
Example, after a machine of the quorum was replaced:
  leasehold quorum join --store redis://a --store redis://b --store redis://c

On stderr it says what it waits for, and until when at most; again whenever
that changes.

Exit status:
    0  all nodes that answer vote, and they are a majority
    1  they do not, and the time is over; the answer names the nodes and why
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
    0  the table is there, made now or before
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
    1  it is there, and cannot be used now
and 64, 69, 74, 77 (also: there is no such table) as in `leasehold --help`.

JSON: name, status, keys (name, type), billing (mode: on_demand or provisioned;
read_units, write_units), expires (the attribute of its time to live), replicas
(Regions), consistency (strong or eventual), witnesses (Regions), arn. What
DynamoDB does not show, or does not show us, is null. A failure is
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
