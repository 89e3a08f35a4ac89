//! Every test and every place in the code that the threat model names exists.

use super::Finding;
use crate::named::Named;
use std::path::Path;

pub const PATH: &str = "docs/threat-model.md";

pub fn check(text: &str, root: &Path) -> Vec<Finding> {
    let wrong = named(text).filter_map(|(line, named)| Some((line, named.expect_item(root).err()?)));
    let finding = |(line, message)| Finding { path: PATH.to_owned(), line, rule: "true-threat-model", message };
    let mut findings: Vec<_> = wrong.map(finding).collect();
    // Each row of a table has something that keeps what it says, but for its head.
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let is_head = lines.get(number + 1).is_some_and(|next| next.starts_with("|---"));
        if line.starts_with("| ") && !is_head && !line.contains("::") {
            let message = "this row names nothing that keeps it: `path::name` of a test, or of the code".to_owned();
            findings.push(Finding { path: PATH.to_owned(), line: number + 1, rule: "true-threat-model", message });
        }
    }
    findings
}

/// Those that are tests.
pub fn tests(text: &str, root: &Path) -> Vec<Named> {
    named(text).map(|(_, named)| named).filter(|named| named.expect_test(root).is_ok()).collect()
}

/// The names between backquotes that have a path, with their lines.
fn named(text: &str) -> impl Iterator<Item = (usize, Named)> {
    text.lines().enumerate().flat_map(|(number, line)| {
        line.split('`').skip(1).step_by(2).filter_map(Named::parse).map(move |named| (number + 1, named))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(text: &str) -> Vec<usize> {
        check(text, Path::new(env!("CARGO_MANIFEST_DIR"))).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn what_is_not_there_is_flagged() {
        assert_eq!(flagged("`src/tidy/threats.rs::PATH`, `src/tidy/threats.rs::what_is_not_there_is_flagged`"), [0; 0]);
        assert_eq!(flagged("\n`src/tidy/threats.rs::gone`\n`src/gone.rs::PATH`"), [2, 3]);
    }

    #[test]
    fn a_promise_that_nothing_keeps_is_flagged() {
        let table = "| promise | kept by |\n|---|---|\n| a | `src/tidy/threats.rs::PATH` |\n| b | the reader |\n";
        assert_eq!(flagged(table), [4]);
    }

    #[test]
    fn tests_are_told_from_code() {
        let text = "`src/tidy/threats.rs::PATH` `src/tidy/threats.rs::tests_are_told_from_code`";
        let found = tests(text, Path::new(env!("CARGO_MANIFEST_DIR")));
        assert_eq!(found.iter().map(|named| named.name.as_str()).collect::<Vec<_>>(), ["tests_are_told_from_code"]);
    }
}
