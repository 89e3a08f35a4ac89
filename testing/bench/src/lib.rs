//! Parts shared by the demo, the benchmarks and the chaos tests.

pub mod args;
pub mod bare;
pub mod child;
pub mod database;
pub mod figures;
#[cfg(feature = "peers")]
pub mod peers;
pub mod protected;
pub mod records;
pub mod rng;
pub mod stage;
pub mod valgrind;

use std::fmt::Display;
use std::process::ExitCode;

/// The end of a program, with a message where it has failed.
pub fn exit_code<E: Display>(program: &str, result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The way this program was compiled, for figures that depend on it.
pub const fn build() -> &'static str {
    if cfg!(debug_assertions) { "not optimised, with debug assertions" } else { "optimised" }
}
