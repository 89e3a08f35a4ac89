//! `cargo xtask bench`: programs of the benchmark crates.

use crate::run::{self, Failure, Result, Steps};
use crate::{component, interop, node, python, setup};
use std::process::Command;

const PROGRAMS: [&str; 5] = ["core", "sqlite", "redis", "quorum", "dynamodb"];
/// Measured in languages of their own.
const ELSEWHERE: [&str; 3] = ["component", "python", "node"];
/// Those that compare with other libraries, or need other servers, which nothing else should have to compile or install.
const BESIDE_PEERS: [&str; 3] = ["bench-redis", "bench-quorum", "bench-dynamodb"];

pub fn bench(args: &[String]) -> Result {
    let (names, rest) = selected(args)?;
    let mut steps = Steps::default();
    let programs: Vec<String> =
        names.iter().filter(|name| PROGRAMS.contains(name)).map(|name| format!("bench-{name}")).collect();
    run_programs(&mut steps, &programs, rest)?;
    for name in names {
        match name {
            "component" => component::bench(&mut steps)?,
            "python" => python::bench(&mut steps, rest)?,
            "node" => node::bench(&mut steps, rest)?,
            _ => {}
        }
    }
    Ok(())
}

fn run_programs(steps: &mut Steps, programs: &[String], rest: &[String]) -> Result {
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
        build.args(["-p", "leasehold-peers"]);
        peers.iter().for_each(|program| _ = build.args(["--bin", program]));
        let installing = interop::begin();
        steps.run(&format!("build {}", peers.join(" ")), build)?;
        others = Some(installing.finish(steps)?);
    }
    for program in programs {
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
    match args.split_first() {
        Some((first, rest)) if all().any(|name| name == first) => Ok((vec![first], rest)),
        Some((first, _)) if !first.starts_with('-') => {
            let names: Vec<&str> = all().collect();
            Err(Failure::new(format!("there is no benchmark `{first}`\n  there are: {}", names.join(", "))))
        }
        _ => Ok((all().collect(), args)),
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
