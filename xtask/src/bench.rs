//! `cargo xtask bench`: programs of the benchmark crates.

mod aims;
mod machine;
mod page;
mod pictures;
mod plot;
mod record;
mod svg;

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{component, interop, node, python, setup};
use std::process::Command;

const PROGRAMS: [&str; 10] =
    ["core", "sqlite", "redis", "quorum", "dynamodb", "postgres", "etcd", "serve", "admin", "cas"];
/// Measured in languages of their own.
const ELSEWHERE: [&str; 3] = ["component", "python", "node"];
/// Those that compare with other libraries, or need other servers, which nothing else should have to compile or install.
const BESIDE_PEERS: [&str; 8] = ["redis", "quorum", "dynamodb", "postgres", "etcd", "serve", "admin", "cas"];

/// Keep the figures, and draw them.
const PLOT: &str = "--plot";

pub fn bench(args: &[String]) -> Result {
    let (plots, args): (Vec<String>, Vec<String>) = args.iter().cloned().partition(|arg| arg == PLOT);
    if plots.is_empty() { plot::measure_all(&args, false) } else { plot::plot(&args) }
}

fn run_one(steps: &mut Steps, name: &str, rest: &[String]) -> Result {
    match name {
        "component" => component::bench(steps),
        "python" => python::bench(steps, rest),
        "node" => node::bench(steps, rest),
        program => run_program(steps, program, rest),
    }
}

fn run_program(steps: &mut Steps, program: &str, rest: &[String]) -> Result {
    let mut build = released();
    let needs_peers = BESIDE_PEERS.contains(&program);
    let file = if needs_peers { "bench".to_owned() } else { format!("bench-{program}") };
    let mut command = Command::new(run::target()?.join("release").join(&file));
    if needs_peers {
        command.arg(program);
        setup::install(steps)?;
        build.args(["-p", "leasehold-chaos", "--bin", &file]);
        if program == "serve" {
            build.args(["-p", "leasehold-cli", "--bin", "leasehold"]);
        }
        interop::install(steps)?.tell(&mut command);
        if program == "redis" {
            command.env("LEASEHOLD_LOCKS_PYTHON", python::install_peers(steps)?);
        }
    } else {
        setup::c_compiler()?;
        build.args(["-p", "leasehold-bench", "--bin", &file]);
    }
    steps.run(&format!("build {program}"), build)?;
    command.args(rest);
    steps.run(program, command)
}

/// As Rust users build it. Everything else here shares one profile with debug assertions, which cost time.
fn released() -> Command {
    let mut build = run::cargo("build");
    build.arg("--release");
    build
}

/// The benchmarks to run, and the arguments for them.
fn selected(args: &[String]) -> Result<(Vec<&str>, &[String])> {
    let is_known = |arg: &&String| all().any(|name| name == **arg);
    let (named, rest) = args.split_at(args.iter().take_while(is_known).count());
    match rest.first() {
        // One may take words of its own.
        Some(word) if named.len() != 1 && !word.starts_with('-') => {
            let names: Vec<&str> = all().collect();
            Err(Failure::new(format!("there is no benchmark `{word}`\n  there are: {}", names.join(", "))))
        }
        _ if named.is_empty() => Ok((all().collect(), rest)),
        _ => Ok((named.iter().map(String::as_str).collect(), rest)),
    }
}

fn all() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().chain(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_name_selects_one_benchmark_and_keeps_its_arguments() {
        let args = words("sqlite --processes 8");
        assert_eq!(selected(&args).expect("a known name"), (vec!["sqlite"], &args[1..]));
        let args = words("node 1000 5");
        assert_eq!(selected(&args).expect("words of its own"), (vec!["node"], &args[1..]));
    }

    #[test]
    fn several_names_select_these() {
        let args = words("sqlite node --quick");
        assert_eq!(selected(&args).expect("known names"), (vec!["sqlite", "node"], &args[2..]));
        let failure = selected(&words("sqlite node consul")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`consul`"), "{failure}");
    }

    #[test]
    fn without_a_name_all_benchmarks_run() {
        let args = words("--quick");
        assert_eq!(selected(&args).expect("no name is fine"), (all().collect(), &args[..]));
        assert_eq!(selected(&[]).expect("nothing is fine").0, all().collect::<Vec<_>>());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let failure = selected(&words("consul")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`consul`") && failure.contains("core, sqlite"), "{failure}");
    }
}
