//! The arguments, and the help that explains them.

mod attempts;
mod help;
mod hold;
mod holder;
mod occurrence;
mod replacing;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "top")]
mod top;
mod watching;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::{duration, status};
pub(crate) use attempts::AttemptsArgs;
use help::{
    BREAK_HELP, COMPLETIONS_HELP, CREATE_HELP, DOCTOR_HELP, ELECT_HELP, EXEC_HELP, INIT_HELP, INSPECT_HELP, JOIN_HELP,
    LIST_HELP, MAIN_HELP, ONCE_HELP, PERMITS_HELP, REVOKE_HELP, RUNS_HELP, SESSIONS_HELP, SHOW_HELP, STATUS_HELP,
    WATCH_HELP,
};
pub(crate) use hold::{HoldArgs, OnLost};
pub(crate) use holder::{BreakArgs, MeantArgs, RevokeArgs, SessionsArgs};
pub(crate) use occurrence::OccurrenceArgs;
pub(crate) use replacing::ReplacingArgs;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
#[cfg(feature = "top")]
pub(crate) use top::TopArgs;
pub(crate) use watching::WatchingArgs;

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

/// The heading of the options that every command has, below its own.
const STORE: &str = "Store";

/// Options that are accepted before and after the command's name. As global arguments, the second of two would
/// silently win.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store of the locks, such as sqlite:/var/lib/app/locks.db; repeat it for the nodes of a quorum
    ///
    /// sqlite:PATH serves all processes of one machine; a missing file is created. These serve many machines:
    /// redis://HOST, postgres://USER@HOST/DATABASE, etcd://HOST, dynamodb://TABLE?region=REGION, s3://BUCKET?region=REGION,
    /// azblob://ACCOUNT/CONTAINER, gs://BUCKET, cosmos://ACCOUNT/DATABASE/CONTAINER, and a Redis behind HTTP with
    /// upstash+https://:TOKEN@HOST or webdis+http://HOST.
    ///
    /// Without --store the environment variable LEASEHOLD_STORE is used. Without that, a file in your state folder
    /// (~/.local/state/leasehold/locks.db) is used, with a warning: only your own processes on this machine see its
    /// locks. LEASEHOLD_REQUIRE_STORE=1 makes this an error. Several --store options, or several urls in LEASEHOLD_STORE,
    /// are the independent nodes of a quorum: a majority of them grants a lock, so a minority may fail.
    #[arg(long = "store", value_name = "URL", help_heading = STORE)]
    pub urls: Vec<String>,
    /// For a quorum: the longest ttl of its locks [default: the one that most nodes remember, or else 60s]
    ///
    /// Without it, the environment variable LEASEHOLD_MAX_TTL is used. A single store has no such setting, and ignores
    /// the variable.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    #[arg(help_heading = STORE)]
    pub max_ttl: Option<Duration>,
    /// For a quorum: its id [default: derived from the names of its nodes]
    ///
    /// Without it, the environment variable LEASEHOLD_QUORUM_ID is used, except for a single store.
    #[arg(long, value_name = "ID", help_heading = STORE)]
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
    /// Run a command unless it was done before
    ///
    /// A lock keeps two machines from running a job at the same time; the second may still run it after the first. `once`
    /// writes down that the command has succeeded, in one step with the release of its lock, so that nobody runs it again:
    /// --key, --every, --cooldown or --keep says until when, and one of them has to be there. The command's environment is
    /// that of `exec`, and so is the handling of signals and of a lost lease; LEASEHOLD_RESOURCE is NAME@KEY.
    #[command(after_long_help = ONCE_HELP)]
    Once(OnceArgs),
    /// Leader election: run a command on one machine, and on another one when that machine dies
    ///
    /// All of them run `elect` with the same name. One becomes the leader and runs the command; the others wait. When the
    /// leader dies, or loses its lease, which ends its command, another one runs the command, with a higher token. A
    /// leader that lost its lease waits with the others, and so does a machine whose store does not answer. When the
    /// command ends by itself, so does leasehold, and the next machine leads. The command's environment and signals are
    /// those of `exec`; LEASEHOLD_RESOURCE is the name.
    #[command(after_long_help = ELECT_HELP)]
    Elect(ElectArgs),
    /// Show the holder of a lock, or the completion of a run: since when, the token, and the time left
    ///
    /// The answer is out of date when it arrives: use it for information, never for decisions.
    #[command(after_long_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Show the locks that are held, one line for each
    ///
    /// Runs in progress are shown too. Each page is a bounded request that blocks nobody, whatever else the store keeps. The
    /// answer is out of date when it arrives: use it for information, never for decisions.
    #[command(after_long_help = LIST_HELP)]
    List(ListArgs),
    /// Show runs: which work is done or under way, by whom and since when, one line for each
    ///
    /// A run is shown while its completion stands. The answer is out of date when it arrives: use it for information, never for
    /// decisions.
    #[command(after_long_help = RUNS_HELP)]
    Runs(ListArgs),
    /// Show each change of a lock's holder, one line for each, until it is interrupted
    ///
    /// The lock is read again and again, so a holder that comes and goes between two readings is not shown.
    #[command(after_long_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Show the locks that are held in a live table, on a terminal
    ///
    /// The answer is out of date when it arrives: use it for information, never for decisions.
    #[cfg(feature = "top")]
    #[command(after_long_help = top::HELP)]
    Top(TopArgs),
    /// Force a lock free (prompts first)
    ///
    /// The last resort, for a holder that is known to be dead, or that must give way before its ttl ends. If the holder
    /// is still working, two clients work from now on: the holder notices the loss only at its next renewal. The token is
    /// kept, so the next holder gets a larger one, and a protected resource that checks tokens rejects the former holder.
    #[command(after_long_help = BREAK_HELP)]
    Break(BreakArgs),
    /// Ask a lock's holder to release it (prompts first)
    ///
    /// At its next renewal, after at most a third of its ttl, the holder is notified that it has lost the lease. The lock
    /// becomes free as soon as its work has ended; a holder that is dead or does not react keeps it until its ttl is
    /// over. Nobody else gets the lock before that, so this is safe while the holder works.
    #[command(after_long_help = REVOKE_HELP)]
    Revoke(RevokeArgs),
    /// Show the sessions of clients that were given a name, one line for each, with the number of their locks
    ///
    /// A client takes all of its locks in one session: see --session of `exec`, and `session` of the libraries. The
    /// answer is out of date when it arrives: use it for information, never for decisions.
    #[command(after_long_help = SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// Serve the same locks over HTTP, for programs in any language
    ///
    /// The daemon holds the leases and renews them in its store. A client keeps a lease by renewing it within its ttl, or
    /// by keeping the connection of its request open; a client that dies loses its lease. The daemon also serves metrics
    /// for Prometheus, and a web page.
    #[cfg(feature = "serve")]
    #[command(after_long_help = serve::HELP)]
    Serve(ServeArgs),
    /// Check a store, and show problems with advice
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Make a quorum of several stores, show which of its nodes vote, or wait until they do
    Quorum(QuorumArgs),
    /// Change the number of permits of a semaphore, while nobody holds one
    Permits(PermitsArgs),
    /// Make the table of a store that needs one, or show it: DynamoDB, PostgreSQL
    #[command(name = "store", visible_alias = "table")]
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
            Self::Once(args) => Some(&args.store),
            Self::Elect(args) => Some(&args.store),
            Self::Inspect(args) => Some(&args.store),
            Self::List(args) | Self::Runs(args) => Some(&args.store),
            Self::Watch(args) => Some(&args.store),
            #[cfg(feature = "top")]
            Self::Top(args) => Some(&args.store),
            #[cfg(feature = "serve")]
            Self::Serve(args) => Some(&args.store),
            Self::Break(args) => Some(&args.store),
            Self::Revoke(args) => Some(&args.store),
            Self::Sessions(args) => Some(&args.store),
            Self::Doctor(args) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Init(args) }) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Status(args) }) => Some(&args.store),
            Self::Quorum(QuorumArgs { action: QuorumAction::Join(args) }) => Some(&args.store),
            Self::Table(TableArgs { action: TableAction::Create(args) }) => Some(&args.store),
            Self::Table(TableArgs { action: TableAction::Show(args) }) => Some(&args.store),
            Self::Permits(PermitsArgs { action: PermitsAction::Set(args) }) => Some(&args.store),
            Self::Completions(_) => None,
        }
    }

    /// Tells if the answer is for machines.
    pub(crate) const fn json(&self) -> bool {
        match self {
            Self::Inspect(args) => args.json,
            Self::List(args) | Self::Runs(args) => args.json,
            Self::Watch(args) => args.json,
            Self::Break(args) => args.json,
            Self::Revoke(args) => args.json,
            Self::Sessions(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Init(args) }) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Status(args) }) => args.json,
            Self::Quorum(QuorumArgs { action: QuorumAction::Join(args) }) => args.json,
            Self::Table(TableArgs { action: TableAction::Create(args) }) => args.json,
            Self::Table(TableArgs { action: TableAction::Show(args) }) => args.json,
            #[cfg(feature = "serve")]
            Self::Serve(_) => false,
            #[cfg(feature = "top")]
            Self::Top(_) => false,
            Self::Exec(_) | Self::Once(_) | Self::Elect(_) | Self::Permits(_) | Self::Completions(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub watching: WatchingArgs,
    /// The longest wait for the lock [default: forever]
    ///
    /// Meanwhile a store that cannot be reached is tried again. Without --wait, such a store ends leasehold at once. A
    /// message names the holder after a wait of 1s on a terminal and of 5s elsewhere, and each time the wait has doubled.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    /// Do not wait for a holder that is alive; the same as --wait 0s
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// Exit status if the lock could not be acquired; with 0, there is no message either
    #[arg(long, value_name = "STATUS", default_value_t = status::BUSY)]
    pub busy_status: u8,
    /// Run up to N commands at a time: 1 to 64
    ///
    /// The resource names a semaphore, and the command runs under one of its N permits. Its environment also has
    /// LEASEHOLD_PERMIT, the number of the permit from 0. All commands must give the same N; `leasehold permits set`
    /// changes it.
    #[arg(long, value_name = "N")]
    pub permits: Option<usize>,
    /// The name of the lock: 1 to 1024 bytes, no control characters
    pub name: String,
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl ExecArgs {
    /// The time limit for the lock; `None` waits forever.
    pub(crate) fn wait(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub occurrence: OccurrenceArgs,
    /// Once done, the job is not done again for this long; instead of a key or period
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["key", "every", "cron", "keep"])]
    pub cooldown: Option<Duration>,
    /// How long the job counts as done [default: 7d, or two periods if those are longer]
    ///
    /// At least the ttl and the period, at most 100 years, on a quorum 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub keep: Option<Duration>,
    #[command(flatten)]
    pub attempts: AttemptsArgs,
    /// The longest wait while another client runs the job [default: do not wait]
    ///
    /// leasehold ends as soon as the other client has done the job, and takes over, with a higher token, if that one
    /// fails or dies. Meanwhile a store that cannot be reached is tried again.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub watching: WatchingArgs,
    /// Count a command that fails as done, too
    ///
    /// Without this option, a command that ends with a status other than 0, or by a signal, leaves the work to the next
    /// client.
    #[arg(long)]
    pub keep_failures: bool,
    /// Keep what the command writes to stdout, up to 4 KiB, for those who come later
    ///
    /// A later start with this option writes it to stdout in the place of the command. Longer output is not kept: the job counts as
    /// done, and leasehold exits with the status 74.
    #[arg(long)]
    pub save_output: bool,
    /// For a quorum: also count nodes that have lost their data
    ///
    /// Use it only if you know that no completion was lost; otherwise a job may be done a second time.
    #[arg(long)]
    pub trust_quorum: bool,
    /// Run the job even if it was done; its completion is then written again
    #[arg(long)]
    pub even_if_done: bool,
    #[command(flatten)]
    pub replacing: ReplacingArgs,
    /// Exit status if the job was done before
    #[arg(long, value_name = "STATUS", default_value_t = status::DONE)]
    pub done_status: u8,
    /// Exit status if another client runs the job; with 0, there is no message either
    #[arg(long, value_name = "STATUS", default_value_t = status::BUSY)]
    pub running_status: u8,
    /// Remove the completion and the count of attempts, so that the job is done again
    ///
    /// Waits up to 10s while another client runs the job.
    #[arg(long, conflicts_with_all = [
        "cooldown", "keep", "wait", "ttl", "owner", "session", "max_hold", "on_lost", "lost_status",
        "keep_failures", "save_output", "trust_quorum", "even_if_done", "replace", "replaced_status", "done_status", "running_status", "verbose", "no_watch", "observations",
        "command", "max_attempts", "retry_after", "given_up_status",
    ])]
    pub forget: bool,
    /// The name of the job: 1 to 1024 bytes, no control characters
    pub name: String,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "forget", num_args = 1.., value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ElectArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    /// The name of the election: 1 to 1024 bytes, no control characters
    pub name: String,
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock, or the run as `leasehold once` names it: NAME@KEY, or NAME@ without a key
    ///
    /// With --key or --every, the name of a job.
    pub name: String,
    #[command(flatten)]
    pub occurrence: OccurrenceArgs,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The beginning of the names [default: all names]
    #[arg(default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Answer in JSON: one object for each, on a line of its own
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock, or the run as `leasehold once` names it: NAME@KEY, or NAME@ without a key
    pub name: String,
    /// The time between two readings: at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    #[arg(allow_hyphen_values = true)]
    pub every: Duration,
    /// Answer in JSON: one object for each change, on a line of its own
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
    /// of its nodes answer, and one client has waited for it a little longer than the longest ttl.
    #[command(after_long_help = INIT_HELP)]
    Init(InitArgs),
    /// Show which nodes answer, vote or abstain, with explanations
    #[command(after_long_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Wait until every reachable node votes
    ///
    /// A node that has lost its data votes again once one client has waited for it a little longer than the longest ttl.
    /// Programs that hold or wait for locks that long do this by themselves; if all clients are short-lived, such as cron
    /// jobs, run this command after a loss. A new quorum that was not marked comes up in the same way, if all of its
    /// nodes answer. The command takes the lock leasehold:join, and several may run at once.
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
    /// On PostgreSQL the schema is created, too. The user of the url must be allowed to create both; locking needs fewer
    /// rights, which `leasehold store show` prints. On DynamoDB the table's keys are those of the url, by default `key`; if the
    /// url has expires=ATTRIBUTE, time to live is enabled for that attribute. The command ends once the table can be
    /// used, after 5 minutes at most. An existing table keeps its billing and its tags.
    #[command(after_long_help = CREATE_HELP)]
    Create(CreateArgs),
    /// Print the SQL for PostgreSQL, or describe the table of DynamoDB
    ///
    /// The SQL creates the table, and gives the user of the url the rights to lock; leasehold does not connect to the
    /// server for it. Of a DynamoDB table, the keys, the billing, and the consistency of the replicas are shown.
    #[command(visible_alias = "describe", after_long_help = SHOW_HELP)]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// DynamoDB: pay for this many reads per second, each consistent and of up to 4 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "write_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub read_units: Option<u64>,
    /// DynamoDB: pay for this many writes per second, each of up to 1 KB [default: pay by request]
    #[arg(long, value_name = "N", requires = "read_units", value_parser = clap::value_parser!(u64).range(1..))]
    pub write_units: Option<u64>,
    /// DynamoDB: a tag of the table; repeat it for more
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
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
pub(crate) struct PermitsArgs {
    #[command(subcommand)]
    pub action: PermitsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermitsAction {
    /// Change the number that all clients must name
    ///
    /// Clients that name another number get an error from then on.
    #[command(after_long_help = PERMITS_HELP)]
    Set(SetPermitsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetPermitsArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The number of readers of a lock for readers and writers, instead of permits
    #[arg(long)]
    pub readers: bool,
    /// The name of the semaphore or lock
    pub name: String,
    /// The new number: 1 to 64
    pub number: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
