//! What fuzzers throw at leasehold, and what must hold whatever they throw.
//!
//! Each module has a function `run` that takes any bytes and panics where something does not hold. `cargo xtask fuzz` builds
//! a program for each, in which libFuzzer looks for bytes that get further; `corpus` has the seeds, and what was found before.

#[cfg(fuzzing)]
mod allocator;
mod answers;
mod checked;
mod made;
mod watch;

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
pub mod wired;

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
    ("wired", wired::run),
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
