//! The map of the house names only what is there.

use super::Finding;

pub const PATH: &str = "docs/architecture.md";

/// Where a quoted word must start to count as a path from the workspace root.
const PLACES: [&str; 11] =
    ["bindings/", "cli/", "client/", "core/", "docs/", "examples/", "node/", "python/", "testing/", "wit/", "xtask/"];

pub fn check(text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // Every second piece stands between backquotes.
        for word in line.split('`').skip(1).step_by(2) {
            if PLACES.iter().any(|place| word.starts_with(place)) && !word.contains([' ', '*']) && !exists(word) {
                let message = format!("`{word}` does not exist; the map shows what is there, correct it");
                findings.push(Finding { path: PATH.to_owned(), line: number + 1, rule: "true-map", message });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(text: &str) -> Vec<usize> {
        check(text, |path| path == "core/src/time.rs").iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_path_that_is_gone_is_flagged() {
        assert_eq!(flagged("The formulas are in `core/src/time.rs`,\nthe rest in `core/src/clock.rs`."), [2]);
        assert_eq!(flagged("| `core/src/time.rs`, `client/src/gone.rs` | x |"), [1]);
    }

    #[test]
    fn other_words_are_no_paths() {
        assert_eq!(
            flagged("`remaining()`, core/src/gone.rs, `src/gone.rs`, `core/src/*.rs`, `cargo xtask test`"),
            [0; 0]
        );
    }
}
