//! A deliberate bug as a file: why it is one, and the line or few that make it.

use std::fs;
use std::path::Path;

use super::suite::Suite;
use crate::run::{Failure, Result};

/// A line to be broken.
#[derive(Debug, PartialEq, Eq)]
pub struct Patch {
    pub name: String,
    /// The rule that it breaks.
    pub why: String,
    /// Below the workspace root.
    pub file: String,
    /// Most bugs are a single one.
    edits: Vec<Edit>,
    /// The suites that are to catch it, in the order of asking.
    pub suites: Vec<Suite>,
}

#[derive(Debug, PartialEq, Eq)]
struct Edit {
    /// Part of a line that occurs once in the file.
    from: String,
    /// The text in its place; may be empty.
    to: String,
}

/// All of a folder, by name.
pub fn read_all(folder: &Path) -> Result<Vec<Patch>> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).map_err(failed)?;
        patches.push(Patch::parse(&name, &text)?);
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

impl Patch {
    /// Lines of `key: value`; each `from` is followed by its `to`.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let wrong = |what: String| Failure::new(format!("the deliberate bug `{name}` {what}"));
        let [mut why, mut file, mut from, mut caught_by] = [const { None }; 4];
        let mut edits = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (key, value) = line.split_once(':').ok_or_else(|| wrong(format!("has no key in `{line}`")))?;
            let slot = match key {
                "why" => &mut why,
                "file" => &mut file,
                "from" => &mut from,
                "to" => {
                    let from = from.take().filter(|from: &String| !from.is_empty());
                    let from = from.ok_or_else(|| wrong("has a `to` without a `from`".into()))?;
                    edits.push(Edit { from, to: value.trim().to_owned() });
                    continue;
                }
                "caught by" => &mut caught_by,
                _ => return Err(wrong(format!("has the key `{key}`, which means nothing"))),
            };
            if slot.replace(value.trim().to_owned()).is_some() {
                return Err(wrong(format!("has two lines of `{key}`")));
            }
        }
        let needed = |key: &str, value: Option<String>| {
            value.filter(|value| !value.is_empty()).ok_or_else(|| wrong(format!("does not say `{key}`")))
        };
        let suites = match caught_by {
            None => Suite::USUAL.to_vec(),
            Some(names) => {
                let known = |name: &str| {
                    Suite::by_name(name.trim()).ok_or_else(|| {
                        wrong(format!("is to be caught by `{name}`, which is none of {}", Suite::names()))
                    })
                };
                names.split(',').map(known).collect::<Result<_>>()?
            }
        };
        Ok(Self {
            name: name.to_owned(),
            why: needed("why", why)?,
            file: needed("file", file)?,
            edits: match from {
                Some(_) => return Err(wrong("has a `from` without a `to`".into())),
                None if edits.is_empty() => return Err(wrong("does not say `from`".into())),
                None => edits,
            },
            suites,
        })
    }

    /// The text of the file with the bug in it.
    pub fn apply(&self, text: &str) -> Result<String> {
        self.edits.iter().try_fold(text.to_owned(), |text, Edit { from, to }| match text.matches(from).count() {
            1 if from != to => Ok(text.replacen(from, to, 1)),
            1 => Err(Failure::new(format!("the deliberate bug `{}` changes nothing", self.name))),
            count => Err(Failure::new(format!(
                "the deliberate bug `{}` does not apply any more: its line occurs {count} times in {}, not once\n  {from}",
                self.name, self.file
            ))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "why: it must not\nfile: core/src/x.rs\nfrom:  let a = b: c;\nto: let a = c;\n";

    #[test]
    fn a_file_names_one_line_and_what_becomes_of_it() {
        let patch = Patch::parse("swap", TEXT).expect("it is complete");
        assert_eq!((patch.name.as_str(), patch.why.as_str()), ("swap", "it must not"));
        assert_eq!(patch.suites, Suite::USUAL);
        assert_eq!(patch.apply("{\n    let a = b: c; // x\n}\n").expect("once"), "{\n    let a = c; // x\n}\n");
        let patch = Patch::parse("gone", &format!("{TEXT}caught by: core, model\n")).expect("it is complete");
        assert_eq!(patch.suites, [Suite::Core, Suite::Model]);
        let patch = Patch::parse("gone", &TEXT.replace("to: let a = c;", "to:")).expect("a line may go");
        assert_eq!(patch.apply("let a = b: c;").expect("once"), "");
    }

    #[test]
    fn a_bug_may_take_several_lines() {
        let patch = Patch::parse("swap", &format!("{TEXT}from: let e = f;\nto:\n")).expect("it is complete");
        assert_eq!(patch.apply("let a = b: c;\nlet e = f;\n").expect("once each"), "let a = c;\n\n");
        assert!(patch.apply("let a = b: c;\n").expect_err("one is missing").to_string().contains("let e = f;"));
    }

    #[test]
    fn a_line_must_occur_exactly_once() {
        let patch = Patch::parse("swap", TEXT).expect("it is complete");
        for (text, count) in [("let a = d;", "0 times"), ("let a = b: c; let a = b: c;", "2 times")] {
            let failure = patch.apply(text).expect_err("not once").to_string();
            assert!(failure.contains("`swap`") && failure.contains(count) && failure.contains("core/src/x.rs"));
        }
        let idle = Patch::parse("idle", &TEXT.replace("let a = c;", "let a = b: c;")).expect("it is complete");
        assert!(idle.apply("let a = b: c;").expect_err("the same").to_string().contains("changes nothing"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        for (text, part) in [
            (TEXT.replace("why: it must not\n", ""), "does not say `why`"),
            (TEXT.replace("to: let a = c;\n", ""), "`from` without a `to`"),
            (TEXT.replace("from:  let a = b: c;", "from:"), "`to` without a `from`"),
            (TEXT.lines().take(2).collect::<Vec<_>>().join("\n"), "does not say `from`"),
            (format!("{TEXT}to: d\n"), "`to` without a `from`"),
            (format!("{TEXT}from: d\nfrom: e\n"), "two lines of `from`"),
            (format!("{TEXT}who: me\n"), "`who`, which means nothing"),
            (format!("{TEXT}and so on\n"), "no key in `and so on`"),
            (format!("{TEXT}caught by: luck\n"), "none of simulator, core"),
        ] {
            let failure = Patch::parse("swap", &text).expect_err(part).to_string();
            assert!(failure.contains(part) && failure.contains("`swap`"), "{failure}");
        }
    }

    #[test]
    fn every_file_there_is_applies_to_the_source_as_it_is() {
        let root = crate::run::root();
        let patches = read_all(&root.join(super::super::FOLDER)).expect("they can be read");
        assert!(patches.len() > 40, "only {}", patches.len());
        for patch in patches {
            let text = fs::read_to_string(root.join(&patch.file)).expect("its file is there");
            patch.apply(&text).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}
