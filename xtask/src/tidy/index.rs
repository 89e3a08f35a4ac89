//! Links in documents lead to files and headings, indexes list every page and example, and a suite runs every example.

use super::Finding;
use std::path::Path;

/// Folders whose `README.md` lists their pages.
pub const PAGES: [&str; 2] = ["docs", "docs/decisions"];
/// A list of pages for language models, whose links are followed too.
pub const FOR_MODELS: &str = "docs/llms.txt";
/// A folder whose `README.md` lists its programs.
pub const EXAMPLES: &str = "examples";

/// Suites that run each file of a folder with this ending.
const SUITES: [(&str, &str, &str); 4] = [
    ("rust/src/bin/", ".rs", "examples/rust/tests/output.rs"),
    ("python/", ".py", "python/tests/test_examples.py"),
    ("node/", ".mjs", "node/test/examples.test.mjs"),
    ("shell/", ".sh", "cli/tests/command/examples.rs"),
];
/// Other files in the folder of examples.
const NO_EXAMPLES: [&str; 3] = ["README.md", "rust/Cargo.toml", "rust/tests/output.rs"];

/// The links of a document to other files of the repository.
pub fn check_links(path: &str, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (link, _) in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let file = link.split(['#', ' ']).next().unwrap_or_default();
            if !file.is_empty() && !file.contains(':') && !exists(&folder.join(file)) {
                let message = format!("`{link}` does not exist; correct the link");
                findings.push(Finding { path: path.to_owned(), line: number + 1, rule: "true-links", message });
            }
        }
    }
    findings
}

/// The headings of pages to which a document links.
pub fn check_headings(path: &str, text: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (link, _) in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let link = link.split(' ').next().unwrap_or_default();
            let Some((file, heading)) = link.split_once('#') else { continue };
            if file.contains(':') || !(file.is_empty() || file.ends_with(".md")) {
                continue;
            }
            let page = if file.is_empty() { Some(text.to_owned()) } else { read(&folder.join(file)) };
            // `check_links` tells of files that are not there.
            if page.is_some_and(|page| !anchors(&page).any(|anchor| anchor == heading)) {
                let message = format!("`{link}`: the page has no such heading; correct the link");
                findings.push(Finding { path: path.to_owned(), line: number + 1, rule: "true-links", message });
            }
        }
    }
    findings
}

/// The headings of a page, as links name them.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    // Every second piece is code.
    let texts = page.split("\n```").step_by(2);
    let headings =
        texts.flat_map(str::lines).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    headings.map(|heading| {
        let words = heading.trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// `files` are all those below the index's folder. Of the folders in it the index lists `README.md`.
pub fn check_pages(index: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let is_page = |file: &&String| match file.split_once('/') {
        None => file.ends_with(".md") && *file != "README.md",
        Some((_, name)) => name == "README.md",
    };
    files.iter().filter(is_page).filter_map(|page| check_listed(index, text, page)).collect()
}

/// `files` are all those below the folder of examples.
pub fn check_examples(index: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !NO_EXAMPLES.contains(&file.as_str())) {
        findings.extend(check_listed(index, text, file));
        let is_run = SUITES.iter().any(|(folder, ending, _)| {
            file.strip_prefix(folder).is_some_and(|name| name.ends_with(ending) && !name.contains('/'))
        });
        if !is_run {
            let run = SUITES.map(|(folder, ending, suite)| format!("{folder}*{ending} by {suite}")).join(", ");
            let message = format!("no suite runs this example; suites run {run}");
            findings.push(Finding { path: format!("{EXAMPLES}/{file}"), line: 1, rule: "examples-are-run", message });
        }
    }
    findings
}

fn check_listed(index: &str, text: &str, file: &str) -> Option<Finding> {
    let message = format!("`{file}` is not listed; link to it");
    let finding = Finding { path: index.to_owned(), line: 1, rule: "complete-index", message };
    (!text.contains(&format!("]({file})"))).then_some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|finding| finding.rule).collect()
    }

    fn files<const N: usize>(names: [&str; N]) -> [String; N] {
        names.map(str::to_owned)
    }

    #[test]
    fn a_link_to_a_missing_file_is_flagged_with_its_line() {
        let text = "[a](redis.md) [b](https://example.com/gone) [c](#access)\n[d](redis.md#urls), [e](../gone.md#top)";
        let findings = check_links("docs/quorum.md", text, |path| path == Path::new("docs/redis.md"));
        assert_eq!((rules(&findings), findings[0].line), (vec!["true-links"], 2));
    }

    #[test]
    fn a_link_to_a_missing_heading_is_flagged() {
        let other = "# Top\n\n```sh\n# no heading\n```\n\n## `run`: why, how\n";
        let found = |link: &str| {
            let text = format!("## Here\n[a]({link})");
            check_headings("docs/a.md", &text, |path| (path == Path::new("docs/b.md")).then(|| other.to_owned())).len()
        };
        assert_eq!(["#here", "b.md#top", "b.md#run-why-how", "b.md", "c.rs#L7", "https://x#y"].map(found), [0; 6]);
        assert_eq!(["#there", "b.md#no-heading", "b.md#run"].map(found), [1; 3]);
    }

    #[test]
    fn a_page_that_the_index_omits_is_flagged() {
        let pages = files(["README.md", "redis.md", "infra/README.md", "infra/more.md", "build.mjs"]);
        let text = "[Redis](redis.md), [samples](infra/README.md)";
        assert_eq!(check_pages("docs/README.md", text, &pages), []);
        assert_eq!(rules(&check_pages("docs/README.md", "[Redis](redis.md)", &pages)), ["complete-index"]);
    }

    #[test]
    fn an_example_that_no_suite_runs_is_flagged() {
        let found = |file: &str| rules(&check_examples("examples/README.md", &format!("[x]({file})"), &files([file])));
        for run in ["rust/src/bin/x.rs", "python/x.py", "node/x.mjs", "shell/x.sh", "README.md", "rust/Cargo.toml"] {
            assert_eq!(found(run), [""; 0], "{run}");
        }
        for forgotten in ["go/x.go", "python/deep/x.py", "python/x.txt", "rust/src/x.rs"] {
            assert_eq!(found(forgotten), ["examples-are-run"], "{forgotten}");
        }
        assert_eq!(rules(&check_examples("examples/README.md", "", &files(["python/x.py"]))), ["complete-index"]);
    }
}
