//! Plain English, as far as it can be counted: how doc comments open, and a word that makes readers look twice.

use super::Finding;
use std::collections::BTreeMap;

/// Words that open a question in place of an answer.
const RIDDLES: [&str; 6] = ["What", "Who", "Whose", "Whom", "Whether", "Whatever"];
const WORD: &str = "whoever";

/// The riddles and the words that each folder may still have. These numbers may only fall.
const LEFT: [(&str, usize, usize); 5] =
    [("client", 0, 4), ("bindings", 6, 0), ("testing", 0, 2), ("xtask", 0, 3), ("docs", 0, 3)];

/// Counts over all files, by folder.
#[derive(Default)]
pub struct Count {
    folders: BTreeMap<String, (usize, usize)>,
}

impl Count {
    /// Counts in a file, whose path is relative to the workspace root.
    pub fn add(&mut self, path: &str, text: &str) {
        let folder = path.split_once('/').map_or("", |(folder, _)| folder);
        let (riddles, words) = self.folders.entry(folder.to_owned()).or_default();
        let mut is_within = false;
        for line in text.lines() {
            *words += line.to_ascii_lowercase().matches(WORD).count();
            let doc = doc_comment(line).filter(|_| path.ends_with(".rs"));
            *riddles += usize::from(doc.is_some_and(|doc| !is_within && RIDDLES.contains(&first_word(doc))));
            is_within = doc.is_some();
        }
    }

    /// Findings for folders with more than they had.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (folder, (riddles, words)) in &self.folders {
            let left = LEFT.iter().find(|(name, _, _)| name == folder);
            let (most_riddles, most_words) = left.map_or((0, 0), |(_, riddles, words)| (*riddles, *words));
            let mut add = |count: usize, most: usize, what: &str| {
                if count > most {
                    let message = format!("{count} {what}; {most} may be left of earlier days, and no new ones");
                    let path = if folder.is_empty() { "." } else { folder.as_str() }.to_owned();
                    findings.push(Finding { path, line: 1, rule: "plain-english", message });
                }
            };
            let openings = "doc comments open with What, Who or Whether: say what the thing is or does";
            add(*riddles, most_riddles, openings);
            add(*words, most_words, "times \"whoever\": name the caller, the holder, the waiter");
        }
        findings
    }
}

fn doc_comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//!").or_else(|| line.strip_prefix("///").filter(|rest| !rest.starts_with('/')))
}

fn first_word(doc: &str) -> &str {
    doc.trim_start().split(|c: char| !c.is_alphabetic()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(path: &str, text: &str) -> Vec<String> {
        let mut count = Count::default();
        count.add(path, text);
        let start = |message: String| message.split_inclusive(' ').take(3).collect::<String>().trim().to_owned();
        count.findings().into_iter().map(|finding| start(finding.message)).collect()
    }

    #[test]
    fn a_doc_comment_that_opens_with_a_question_is_flagged() {
        let text =
            "//! What this is.\n\n/// Whether it is.\n/// Who is fine here.\nfn f() {}\n/// The one. Who?\nfn g() {}\n";
        assert_eq!(flagged("new/src/lib.rs", text), ["2 doc comments"]);
        assert_eq!(flagged("new/README.md", text), [""; 0]);
        assert_eq!(flagged("new/src/lib.rs", "// What a plain comment.\n//// Who\n/// Whatsoever\n"), [""; 0]);
    }

    #[test]
    fn the_word_is_flagged_in_any_text() {
        let text = format!("First.\nFor {WORD} reads this.\n");
        for path in ["new/page.md", "new/a.py", "new/a.rs"] {
            assert_eq!(flagged(path, &text), ["1 times \"whoever\":"], "{path}");
        }
    }

    #[test]
    fn a_folder_keeps_what_it_had_and_gets_no_more() {
        let (folder, riddles, _) = LEFT[0];
        let path = format!("{folder}/src/lib.rs");
        assert_eq!(flagged(&path, &"/// What\nfn f() {}\n".repeat(riddles)), [""; 0]);
        assert_eq!(flagged(&path, &"/// What\nfn f() {}\n".repeat(riddles + 1)).len(), 1);
    }
}
