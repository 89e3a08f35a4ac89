//! Parts of the benchmarks that need servers, or compare with other libraries.

pub mod bare;
pub mod cost;
pub mod samples;
pub mod turns;

use std::error::Error;

use crate::build;

/// An error is shown to a person at a terminal.
pub type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// The machine, what `versions` says, and how this was built.
pub fn surroundings(versions: &str) -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "machine    {}, {cores} cores, load {} before the run\n\
         versions   leasehold {}, {versions}\n\
         build      {}\n",
        model.trim_start_matches([' ', '\t', ':']),
        load.split(' ').next().unwrap_or("unknown"),
        env!("CARGO_PKG_VERSION"),
        build()
    )
}
