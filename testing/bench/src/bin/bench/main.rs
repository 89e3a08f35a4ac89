//! Benchmarks that need servers, or compare with other libraries: `bench NAME ...`.

mod admin;
mod cas;
mod dynamodb;
mod etcd;
mod instructions;
mod objects;
mod postgres;
mod quorum;
mod redis;
mod serve;

use std::process::ExitCode;

type Benchmark = (&'static str, fn() -> ExitCode);

const ALL: [Benchmark; 10] = [
    ("admin", admin::main),
    ("cas", cas::main),
    ("dynamodb", dynamodb::main),
    ("etcd", etcd::main),
    ("instructions", instructions::main),
    ("objects", objects::main),
    ("postgres", postgres::main),
    ("quorum", quorum::main),
    ("redis", redis::main),
    ("serve", serve::main),
];

fn main() -> ExitCode {
    let asked = leasehold_bench::args::benchmark();
    match ALL.into_iter().find(|(name, _)| asked.as_deref() == Some(name)) {
        Some((_, run)) => run(),
        None => {
            let known = ALL.map(|(name, _)| name).join(", ");
            eprintln!("bench: give the name of a benchmark first: {known}");
            ExitCode::from(2)
        }
    }
}
