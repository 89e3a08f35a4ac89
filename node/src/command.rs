//! The `leasehold` command.

use napi_derive::napi;

/// Runs the command line with these arguments, of which the first is the program's name. Returns its exit status.
#[cfg(unix)]
#[napi(catch_unwind)]
pub fn run(args: Vec<String>) -> u8 {
    leasehold_cli::status_of(args.into_iter().map(std::ffi::OsString::from))
}

/// Says that there is no command here. Returns the exit status of what the system refuses.
#[cfg(windows)]
#[expect(clippy::print_stderr, reason = "that is where a command says why it fails")]
#[napi(catch_unwind)]
pub fn run(_: Vec<String>) -> u8 {
    eprintln!("leasehold: the command runs on Unix only for now, since it needs process groups and signals");
    71
}
