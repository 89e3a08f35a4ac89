//! The `leasehold` command.

use std::ffi::OsString;

use napi_derive::napi;

/// Runs the command line with these arguments, of which the first is the program's name. Returns its exit status.
#[napi(catch_unwind)]
pub fn run(args: Vec<String>) -> u8 {
    leasehold_cli::status_of(args.into_iter().map(OsString::from))
}
