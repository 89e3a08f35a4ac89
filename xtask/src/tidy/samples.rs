//! Every block of code in a page is run by a test, or says why not.
//!
//! A comment before a block, or one with the language's name anywhere in the page, says so: `<!-- run by PATH -->` names the
//! test, `<!-- from PATH -->` the file that has these lines, `<!-- not run: REASON -->` the reason. Suites find all other
//! blocks in `python`, `js` and `console` by themselves. `<!-- after: CODE -->` is code that makes a part of a program whole.

use super::Finding;

/// Languages, with the suite that runs their blocks in each page below `docs`. Those in Python and Node are run in the README too.
const SUITES: [(&str, &str); 3] = [
    ("python", "python/tests/test_pages.py"),
    ("js", "node/test/guide.test.mjs"),
    ("console", "cli/tests/command/guides.rs"),
];
/// The crate whose doc tests are the blocks in Rust of the pages that it names.
const DOC_TESTS: &str = "client/src/lib.rs";
/// The language of what is no code.
const NO_CODE: &str = "text";
const RULE: &str = "samples-are-run";

/// A fenced block, with the comment before it.
struct Block<'a> {
    line: usize,
    language: &'a str,
    mark: Option<&'a str>,
    text: String,
}

/// Tells if this rule reads the page.
pub fn is_page(path: &str) -> bool {
    path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"))
}

pub fn check(page: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for block in blocks(text) {
        let mark = block.mark.or_else(|| text.lines().filter_map(comment).find_map(|mark| of(mark, block.language)));
        let problem = match mark {
            Some(mark) => check_mark(mark, page, &block.text, &read),
            None if block.language == NO_CODE || is_run(page, block.language, &read) => None,
            None => Some(format!(
                "no test runs this block in `{}`; before it write `<!-- run by PATH -->`, `<!-- from PATH -->` or `<!-- not \
                 run: REASON -->`, or call it `{NO_CODE}`",
                block.language
            )),
        };
        findings.extend(problem.map(|message| Finding {
            path: page.to_owned(),
            line: block.line,
            rule: RULE,
            message,
        }));
    }
    findings
}

/// The message about a mark that is not true.
fn check_mark(mark: &str, page: &str, block: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let Some(path) = mark.strip_prefix("run by ") {
        let name = page.rsplit('/').next().unwrap_or(page);
        let named = page.strip_suffix("/README.md").unwrap_or(name);
        return match read(path) {
            None => Some(format!("`{path}` does not exist")),
            Some(test) if !test.contains(name) && !test.contains(named) => {
                Some(format!("`{path}` does not name {name}"))
            }
            Some(_) => None,
        };
    }
    if let Some(path) = mark.strip_prefix("from ") {
        return match read(path) {
            None => Some(format!("`{path}` does not exist")),
            Some(file) if !squeezed(&file).contains(&squeezed(block)) => Some(format!("`{path}` has other lines")),
            Some(_) => None,
        };
    }
    let reason = mark.strip_prefix("not run:").map_or("", str::trim);
    reason.is_empty().then(|| format!("`{mark}` gives no reason"))
}

fn is_run(page: &str, language: &str, read: impl Fn(&str) -> Option<String>) -> bool {
    if !page.starts_with("docs/") {
        return ["python", "js"].contains(&language);
    }
    SUITES.iter().any(|(name, _)| *name == language)
        || (language == "rust" && read(DOC_TESTS).is_some_and(|crate_| crate_.contains(&format!("/{page}\")"))))
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let (mut open, mut mark): (Option<Block<'_>>, Option<&str>) = (None, None);
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { line: number + 1, language, mark, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => mark = comment(line).filter(|mark| is_mark(mark)),
        }
    }
    blocks
}

fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")
}

fn is_mark(comment: &str) -> bool {
    ["run by ", "from ", "not run"].iter().any(|start| comment.starts_with(start))
}

/// The mark of a comment about all blocks of a language.
fn of<'a>(comment: &'a str, language: &str) -> Option<&'a str> {
    comment.strip_prefix(language)?.strip_prefix(' ').filter(|mark| is_mark(mark))
}

/// The text with each run of spaces and line ends as one space: pages leave out indentation.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(text: &str) -> Vec<String> {
        let read = |path: &str| match path {
            "tests/a.rs" => Some("include_str!(\"../docs/page.md\")".to_owned()),
            "infra/a.yaml" => Some("spec:\n  kind: Job\n  name: x\n".to_owned()),
            DOC_TESTS => Some("include_str!(\"../../docs/tested.md\")".to_owned()),
            _ => None,
        };
        let mut messages: Vec<_> =
            check("docs/page.md", text, read).into_iter().map(|finding| finding.message).collect();
        messages.extend(check("docs/tested.md", "```rust\n```\n", read).into_iter().map(|finding| finding.message));
        messages
    }

    #[test]
    fn blocks_that_suites_find_and_texts_need_no_mark() {
        assert_eq!(flagged("```python\nx\n```\n```js\n```\n```console\n$ x\n```\n```text\n```\n"), [""; 0]);
    }

    #[test]
    fn any_other_block_without_a_mark_is_flagged() {
        for language in ["yaml", "rust", "sh", ""] {
            assert_eq!(flagged(&format!("```{language}\n```\n")).len(), 1, "{language}");
        }
    }

    #[test]
    fn a_mark_is_for_the_block_below_it_or_for_a_language() {
        assert_eq!(flagged("<!-- not run: needs a cluster -->\n```yaml\n```\n"), [""; 0]);
        assert_eq!(flagged("<!-- yaml not run: needs a cluster -->\n\n# A\n\n```yaml\n```\n\n```yaml\n```\n"), [""; 0]);
        assert_eq!(flagged("<!-- not run: needs a cluster -->\n\n```yaml\n```\n\n```yaml\n```\n").len(), 2);
        assert_eq!(flagged("<!-- sh not run: needs a cluster -->\n```yaml\n```\n").len(), 1);
    }

    #[test]
    fn a_mark_has_to_be_true() {
        assert_eq!(flagged("<!-- run by tests/a.rs -->\n```rust\n```\n"), [""; 0]);
        assert_eq!(flagged("<!-- run by tests/b.rs -->\n```rust\n```\n"), ["`tests/b.rs` does not exist"]);
        assert_eq!(flagged("<!-- run by infra/a.yaml -->\n```rust\n```\n"), ["`infra/a.yaml` does not name page.md"]);
        assert_eq!(flagged("<!-- from infra/a.yaml -->\n```yaml\nkind: Job\nname: x\n```\n"), [""; 0]);
        assert_eq!(
            flagged("<!-- from infra/a.yaml -->\n```yaml\nkind: Pod\n```\n"),
            ["`infra/a.yaml` has other lines"]
        );
        assert_eq!(flagged("<!-- not run: -->\n```yaml\n```\n"), ["`not run:` gives no reason"]);
    }
}
