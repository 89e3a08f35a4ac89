//! `cargo xtask bench`: runs benchmarks, and shows what they tell; with `--plot` keeps and draws it. With `--face` it checks what Rust
//! users import.
//!
//! Each is run by `cargo xtask bench --run NAME`, which builds it. This program only reads what it tells.

mod aims;
mod benchmarks;
mod face;
mod machine;
mod page;
mod pictures;
mod plot;
mod record;
mod svg;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Read what rustdoc has left in a folder, for `cargo xtask test`.
const FACE: &str = "--face";

type Result<T = ()> = std::result::Result<T, Failure>;

/// An error message that says to the reader what to do.
#[derive(Debug)]
struct Failure(String);

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [face, folder] if face == FACE => face::check(Path::new(folder)),
        args => plot::bench(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nerror: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace: xtask names it, and tests run in the folder of this package.
fn root() -> PathBuf {
    std::env::var_os("LEASEHOLD_ROOT").map_or_else(|| "../..".into(), PathBuf::from)
}
