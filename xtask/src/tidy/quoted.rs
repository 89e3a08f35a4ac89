//! Pages that say where something stands in the source quote it word for word.

use super::Finding;

/// Pages whose tables are held against the source.
pub const PATHS: [&str; 3] = ["docs/defaults.md", "docs/reliability.md", "docs/results.md"];

/// In a cell of a table, what stands in backquotes after a path has to stand in that file.
pub fn check(page: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        for cell in line.split(" | ") {
            // Every second piece stands between backquotes.
            let mut file: Option<(&str, String)> = None;
            for word in cell.split('`').skip(1).step_by(2) {
                let message = match (is_path(word).then(|| read(word)), &file) {
                    (Some(Some(found)), _) => {
                        file = Some((word, found));
                        continue;
                    }
                    (Some(None), _) => format!("`{word}` does not exist"),
                    (None, Some((path, found))) if !found.contains(word) => {
                        format!("`{word}` does not stand in {path}")
                    }
                    (None, _) => continue,
                };
                findings.push(Finding { path: page.to_owned(), line: number + 1, rule: "true-quotes", message });
            }
        }
    }
    findings
}

fn is_path(word: &str) -> bool {
    let has_ending =
        word.rsplit_once('.').is_some_and(|(_, ending)| ["rs", "py", "mjs", "cjs", "ts"].contains(&ending));
    has_ending && word.contains('/') && !word.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(text: &str) -> Vec<String> {
        let read = |path: &str| (path == "core/src/a.rs").then(|| "const TTL: u32 = 30;\n".to_owned());
        check("page", text, read).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_follows_a_path_stands_in_that_file() {
        assert_eq!(flagged("| ttl | 30 s | `core/src/a.rs` `TTL: u32 = 30`, `const` |"), [""; 0]);
        assert_eq!(
            flagged("| ttl | `core/src/a.rs` `TTL: u32 = 60` |"),
            ["`TTL: u32 = 60` does not stand in core/src/a.rs"]
        );
        assert_eq!(flagged("| ttl | `core/src/b.rs` `TTL` |"), ["`core/src/b.rs` does not exist"]);
    }

    #[test]
    fn other_cells_and_other_lines_are_free() {
        assert_eq!(flagged("| `core/src/a.rs` `const` | `anything` |"), [""; 0]);
        assert_eq!(flagged("In `core/src/b.rs` stands `anything`."), [""; 0]);
        assert_eq!(flagged("| `cargo xtask sim` | `a/b` |"), [""; 0]);
    }
}
