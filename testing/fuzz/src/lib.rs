//! The inputs of fuzzers, and the invariants for all of them.
//!
//! Each module has a function `run` that takes any bytes and panics where an invariant is broken. `cargo xtask fuzz`
//! builds a program for each, in which libFuzzer looks for bytes that reach new code; `corpus` has the seeds and
//! earlier finds.

#[cfg(fuzzing)]
mod allocator;
mod answers;
mod invariants;
mod ledger;
mod values;

#[cfg(feature = "client")]
pub mod aws;
pub mod client;
pub mod component;
pub mod dynamodb;
pub mod records;
pub mod redis;
pub mod resp;
pub mod rest;
pub mod settings;
#[cfg(feature = "client")]
pub mod sqlite;
#[cfg(feature = "client")]
pub mod urls;
pub mod with_stores;

/// A function that takes any bytes.
pub type Run = fn(&[u8]);

/// All of them by their names.
pub const TARGETS: &[(&str, Run)] = &[
    #[cfg(feature = "client")]
    ("aws", aws::run),
    ("client", client::run),
    ("component", component::run),
    ("dynamodb", dynamodb::run),
    ("records", records::run),
    ("redis", redis::run),
    ("resp", resp::run),
    ("rest", rest::run),
    ("settings", settings::run),
    #[cfg(feature = "client")]
    ("sqlite", sqlite::run),
    #[cfg(feature = "client")]
    ("urls", urls::run),
    ("with_stores", with_stores::run),
];

/// The program of a target: driven by a fuzzer where it is built for one, and else for the files that it is given.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $run(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                $run(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}
