//! `cargo xtask bench`: programs of the benchmark crates.

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

const PROGRAMS: [&str; 5] = ["core", "sqlite", "redis", "quorum", "dynamodb"];
/// Measured in languages of their own.
const ELSEWHERE: [&str; 3] = ["component", "python", "node"];
/// Those that compare with other libraries, or need other servers, which nothing else should have to compile or install.
const BESIDE_PEERS: [&str; 3] = ["bench-redis", "bench-quorum", "bench-dynamodb"];

/// Keep the figures, and draw them.
const PLOT: &str = "--plot";

pub fn bench(args: &[String]) -> Result {
    let (plots, args): (Vec<String>, Vec<String>) = args.iter().cloned().partition(|arg| arg == PLOT);
    if !plots.is_empty() {
        return plot::plot(&args);
    }
    let (names, rest) = selected(&args)?;
    let mut steps = Steps::default();
    let programs: Vec<&str> = names.iter().copied().filter(|name| PROGRAMS.contains(name)).collect();
    run_programs(&mut steps, &programs, rest)?;
    names.into_iter().try_for_each(|name| run_elsewhere(&mut steps, name, rest))
}

fn run_one(steps: &mut Steps, name: &str, rest: &[String]) -> Result {
    if PROGRAMS.contains(&name) { run_programs(steps, &[name], rest) } else { run_elsewhere(steps, name, rest) }
}

fn run_elsewhere(steps: &mut Steps, name: &str, rest: &[String]) -> Result {
    match name {
        "component" => component::bench(steps),
        "python" => python::bench(steps, rest),
        "node" => node::bench(steps, rest),
        _ => Ok(()),
    }
}

fn run_programs(steps: &mut Steps, names: &[&str], rest: &[String]) -> Result {
    let programs: Vec<String> = names.iter().map(|name| format!("bench-{name}")).collect();
    let (peers, own): (Vec<&str>, Vec<&str>) =
        programs.iter().map(String::as_str).partition(|program| BESIDE_PEERS.contains(program));
    if !own.is_empty() {
        setup::c_compiler()?;
        let mut build = released();
        build.args(["-p", "leasehold-bench"]);
        own.iter().for_each(|program| _ = build.args(["--bin", program]));
        steps.run(&format!("build {}", own.join(" ")), build)?;
    }
    let mut others = None;
    if !peers.is_empty() {
        setup::install(steps)?;
        let mut build = released();
        build.args(["-p", "leasehold-chaos"]);
        peers.iter().for_each(|program| _ = build.args(["--bin", program]));
        steps.run(&format!("build {}", peers.join(" ")), build)?;
        others = Some(interop::install(steps)?);
    }
    for program in &programs {
        let mut command = Command::new(run::target()?.join("release").join(program));
        command.args(rest);
        if let Some(others) = &others {
            others.tell(&mut command);
        }
        steps.run(program, command)?;
    }
    Ok(())
}

/// As users build it. Everything else here shares one profile with debug assertions, which cost time.
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
        let failure = selected(&words("sqlite node etcd")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`etcd`"), "{failure}");
    }

    #[test]
    fn without_a_name_all_benchmarks_run() {
        let args = words("--quick");
        assert_eq!(selected(&args).expect("no name is fine"), (all().collect(), &args[..]));
        assert_eq!(selected(&[]).expect("nothing is fine").0, all().collect::<Vec<_>>());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let failure = selected(&words("etcd")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`etcd`") && failure.contains("core, sqlite"), "{failure}");
    }
}
