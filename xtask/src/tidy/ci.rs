//! The continuous-integration entry point runs what a developer runs, and nothing else.

use super::Finding;

pub const PATH: &str = ".ci/run";
const COMMAND: &str = "cargo xtask test";

pub fn check(text: &str, executable: bool) -> Vec<Finding> {
    let finding = |line, message: String| Finding { path: PATH.to_owned(), line, rule: "ci-only-calls-test", message };
    let mut findings = Vec::new();
    if !executable {
        findings.push(finding(1, format!("the file is not executable; run `chmod +x {PATH}`")));
    }
    let mut calls = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let prepares = line.is_empty() || line.starts_with('#') || is_plain(line, "set") || is_plain(line, "cd");
        match line {
            COMMAND => calls += 1,
            _ if prepares => {}
            _ => findings.push(finding(
                number + 1,
                format!(
                    "`{line}` runs more than `{COMMAND}`; make it a step of xtask/src/test.rs, so that everyone runs it"
                ),
            )),
        }
    }
    if calls != 1 {
        findings.push(finding(1, format!("`{COMMAND}` is called {calls} times; call it once")));
    }
    findings
}

/// One command of this name: nothing chained behind it.
fn is_plain(line: &str, command: &str) -> bool {
    line.split_whitespace().next() == Some(command) && !line.contains([';', '&', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "#!/usr/bin/env bash\n# Why.\nset -eu\ncd \"$(dirname \"$0\")/..\"\ncargo xtask test\n";

    #[test]
    fn the_one_command_passes() {
        assert_eq!(check(GOOD, true), []);
    }

    #[test]
    fn another_command_is_flagged_with_its_line() {
        let findings = check(&format!("{GOOD}cargo deny check\n"), true);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with(".ci/run:6: ci-only-calls-test: `cargo deny check` runs more"));
    }

    #[test]
    fn a_command_hidden_behind_a_harmless_one_is_flagged() {
        assert_eq!(check(&GOOD.replace("set -eu", "set -eu; make"), true).len(), 1);
        assert_eq!(check(&GOOD.replace("cargo xtask test", "cargo xtask test && make"), true).len(), 2);
    }

    #[test]
    fn a_missing_call_and_a_missing_executable_bit_are_flagged() {
        assert_eq!(check("set -eu\n", true).len(), 1);
        assert_eq!(check(GOOD, false).len(), 1);
    }
}
