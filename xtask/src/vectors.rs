//! `cargo xtask vectors`: the golden behaviour vectors in `core/vectors`, checked, written again, or kept for a release.

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::process::Command;

pub fn vectors(args: &[String]) -> Result {
    let action = action(args)?;
    let mut steps = Steps::default();
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-sim", "--bin", "leasehold-vectors"]);
    steps.run("build leasehold-vectors", build)?;
    let mut command = Command::new(run::built()?.join("leasehold-vectors"));
    command.arg(action);
    if action == "--release" {
        command.arg(env!("CARGO_PKG_VERSION"));
    }
    command.arg(run::root().join("core/vectors"));
    let result = steps.run("vectors", command);
    if action == "--check" && result.is_err() {
        return Err(Failure::new(
            "the vectors are not what the core does\n  if the core was changed on purpose: cargo xtask vectors \
             --bless, and read the difference",
        ));
    }
    result
}

/// The argument of the program.
fn action(args: &[String]) -> Result<&'static str> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--check"] => Ok("--check"),
        ["--bless"] => Ok("--bless"),
        ["--release"] => Ok("--release"),
        _ => {
            let given = args.join(" ");
            Err(Failure::new(format!("`{given}`: nothing but `--bless` or `--release` may follow `vectors`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn files_are_written_only_when_told() {
        assert_eq!(action(&[]).expect("nothing is fine"), "--check");
        for known in ["--bless", "--release"] {
            assert_eq!(action(&words(known)).expect("a known option"), known);
        }
        for mistyped in ["--bles", "--bless --check", "bless"] {
            assert!(action(&words(mistyped)).expect_err("mistyped").to_string().contains(mistyped));
        }
    }
}
