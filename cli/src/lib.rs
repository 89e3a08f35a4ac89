//! The `leasehold` command as a function: arguments in, exit status out.
//!
//! [`run`] neither ends the process nor changes it for good. `leasehold exec`, `once` and others catch signals, while they run, and
//! restore the former handlers; they also stop the process when the command is stopped from the terminal. So a program
//! in another language can offer the command line as well. Only `leasehold top` leaves something behind: a handler of the signal
//! for the size of the terminal, and a hook for panics that gives the terminal back.
//!
//! Exit statuses are listed in [`status`] and in the help texts.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

#[cfg(not(unix))]
compile_error!("the command of leasehold runs on Unix only for now: it needs process groups and signals");

mod args;
mod break_lock;
mod doctor;
mod duration;
mod elect;
mod exec;
mod inspect;
mod list;
mod once;
mod output;
mod paint;
mod permits;
mod quorum;
mod revoke;
mod runs;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod sessions;
mod settings;
pub mod status;
mod store;
mod table;
#[cfg(feature = "top")]
mod top;
mod warnings;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use output::{Failure, answer};
use settings::Settings;
use store::Target;

/// Runs the command line. The first argument is the program's name.
///
/// Reads the environment variables and the file of settings that `leasehold --help` names, writes answers to stdout and
/// everything else to stderr. Returns one of the statuses in [`status`], or for `exec` and `once` that of their command.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(status_of(args))
}

/// As [`run`], for callers that need the status as a number.
pub fn status_of(args: impl IntoIterator<Item = OsString>) -> u8 {
    // Where another language's program runs the command, Rust does not know the main thread by name.
    leasehold::ffi::name_thread("main");
    let mut cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let error = with_meant(with_dashes(error));
            // If the error cannot be written, the status still shows it.
            let _ = error.print();
            return if error.use_stderr() { status::USAGE } else { status::DONE };
        }
    };
    let target = Settings::load().and_then(|settings| {
        settings.fill(&mut cli.command);
        Target::of(&cli.store, cli.command.store(), settings)
    });
    let result = target.and_then(|target| match &cli.command {
        Command::Exec(args) => exec::run(args, &target),
        Command::Once(args) => once::run(args, &target),
        Command::Elect(args) => elect::run(args, &target),
        Command::Inspect(args) => inspect::run(args, &target),
        Command::List(args) => list::run(args, &target),
        Command::Runs(args) => runs::run(args, &target),
        Command::Watch(args) => watch::run(args, &target),
        #[cfg(feature = "top")]
        Command::Top(args) => top::run(args, &target),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args, &target),
        Command::Break(args) => break_lock::run(args, &target),
        Command::Revoke(args) => revoke::run(args, &target),
        Command::Sessions(args) => sessions::run(args, &target),
        Command::Doctor(args) => doctor::run(args, &target),
        Command::Quorum(args) => quorum::run(args, &target),
        Command::Permits(args) => permits::run(args, &target),
        Command::Table(args) => schema::run(args, &target),
        Command::Completions(args) => completions(args.shell),
    });
    result.unwrap_or_else(|failure| {
        failure.tell(cli.command.json());
        failure.status
    })
}

/// Adds the advice that clap lacks, where a command follows a name without dashes between them.
fn with_dashes(mut error: clap::Error) -> clap::Error {
    let of = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let is_word = !of(ContextKind::InvalidArg).starts_with('-');
    if error.kind() == clap::error::ErrorKind::UnknownArgument && is_word && of(ContextKind::Usage).contains(" -- ") {
        let tip = "write `--` before the command".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Commands that people try, and those that do it.
const MEANT: [(&str, &str); 14] = [
    ("lock", "exec"),
    ("acquire", "exec"),
    ("with", "exec"),
    ("run", "exec` or `once"),
    ("unlock", "break"),
    ("release", "break"),
    ("force-unlock", "break"),
    ("show", "inspect"),
    ("get", "inspect"),
    ("status", "inspect"),
    ("ls", "list"),
    ("leader", "elect"),
    ("check", "doctor"),
    ("migrate", "store create"),
];

/// Names the command that is meant by a word that is none.
fn with_meant(mut error: clap::Error) -> clap::Error {
    let word = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string).unwrap_or_default();
    if let Some((_, meant)) = MEANT.iter().find(|(tried, _)| *tried == word) {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = format!("did you mean `{meant}`? See `leasehold --help`").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "leasehold", &mut script);
    answer(&String::from_utf8_lossy(&script))?;
    Ok(status::DONE)
}
