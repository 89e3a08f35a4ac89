//! The guide to errors has an entry for each one that a program, the command or a host of the component can meet.

use super::Finding;

pub const PATH: &str = "docs/troubleshooting.md";
const RULE: &str = "errors-are-explained";

/// A place in which errors get their names.
struct Place {
    path: &'static str,
    /// The texts at which it begins and ends.
    part: (&'static str, &'static str),
    /// The text before each name, and the characters of which one ends it.
    name: (&'static str, &'static [char]),
    /// The entry of a name, which stands for `*`.
    entry: &'static str,
}

/// Entries of the guide.
const SECTION: &str = "\n## `*`\n";
const ROW: &str = "\n| `*` |";
const WORD: &str = "`*`";

const QUOTE: &[char] = &['"'];
const CASE: &[char] = &['(', ','];

#[rustfmt::skip]
const PLACES: [Place; 15] = [
    Place { path: "core/src/kind.rs", part: ("fn name(", "\n    }\n"), name: ("=> \"", QUOTE), entry: SECTION },
    Place { path: "core/src/kind.rs", part: ("pub enum ErrorKind {", "\n}\n"), name: ("\n    ", CASE), entry: "`ErrorKind::*`" },
    Place { path: "client/src/cas.rs", part: ("fn name(", "\n    }\n"), name: ("{ \"", QUOTE), entry: SECTION },
    Place { path: "core/src/event.rs", part: ("impl LostReason {", "\n}\n"), name: ("=> \"", QUOTE), entry: ROW },
    Place { path: "python/leasehold/_errors.py", part: ("", "\ndef "), name: ("\nclass ", CASE), entry: WORD },
    Place { path: "python/leasehold/_errors.py", part: ("", "\ndef "), name: ("code = \"", QUOTE), entry: SECTION },
    Place { path: "node/lib/errors.cjs", part: ("", "errorOf"), name: ("kind(\"", QUOTE), entry: WORD },
    Place { path: "node/lib/errors.cjs", part: ("", "errorOf"), name: ("code = \"", QUOTE), entry: SECTION },
    Place { path: "node/lib/errors.cjs", part: ("", "errorOf"), name: (", \"", QUOTE), entry: SECTION },
    Place { path: "wit/leasehold.wit", part: ("variant failure {", "\n    }\n"), name: ("\n        ", CASE), entry: WORD },
    Place { path: "wit/leasehold.wit", part: ("variant lost-reason {", "\n    }\n"), name: ("\n        ", CASE), entry: WORD },
    Place { path: "wit/leasehold.wit", part: ("enum fault-kind {", "\n    }\n"), name: ("\n        ", CASE), entry: WORD },
    Place { path: "wit/leasehold.wit", part: ("enum denial-kind {", "\n    }\n"), name: ("\n        ", CASE), entry: WORD },
    Place { path: "cli/src/status.rs", part: ("", "\npub const fn"), name: (": u8 = ", &[';']), entry: WORD },
    Place { path: "cli/src/serve/reply.rs", part: ("fn bad(", "\nimpl "), name: (", \"", QUOTE), entry: WORD },
];

pub fn check(guide: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let findings = PLACES.iter().flat_map(|place| {
        let text = read(place.path).unwrap_or_default();
        let names = names(&text, place);
        let lost =
            names.is_empty().then(|| format!("{} has no names of errors where this rule reads them", place.path));
        let missing = names.into_iter().filter(|name| !guide.contains(&place.entry.replace('*', name)));
        let missing = missing.map(|name| {
            let entry = place.entry.replace('*', name);
            format!("`{name}` of {} has no entry; write one with {:?}", place.path, entry.trim())
        });
        missing.chain(lost).collect::<Vec<_>>()
    });
    findings.map(|message| Finding { path: PATH.to_owned(), line: 1, rule: RULE, message }).collect()
}

fn names<'a>(text: &'a str, place: &Place) -> Vec<&'a str> {
    let (begin, end) = place.part;
    let Some((_, part)) = text.split_once(begin) else { return Vec::new() };
    let part = part.split_once(end).map_or(part, |(part, _)| part);
    let (before, ends) = place.name;
    let found = part.split(before).skip(1).filter_map(|rest| rest.split_once(ends)).map(|(name, _)| name);
    // Others are comments and messages.
    found.filter(|name| name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use std::fs;

    fn flagged(guide: &str) -> Vec<String> {
        let findings = check(guide, |path| fs::read_to_string(run::root().join(path)).ok());
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_error_without_an_entry_is_flagged() {
        let guide = fs::read_to_string(run::root().join(PATH)).expect("the guide is there");
        assert_eq!(flagged(&guide), [""; 0]);
        for (entry, place) in [
            ("\n## `stale_token`\n", "core/src/kind.rs"),
            ("`ErrorKind::NotOwned`", "core/src/kind.rs"),
            ("\n## `too_many_conflicts`\n", "client/src/cas.rs"),
            ("\n| `max_hold` |", "core/src/event.rs"),
            ("`FinishUnconfirmedError`", "python/leasehold/_errors.py"),
            ("`CommandRejectedError`", "node/lib/errors.cjs"),
            ("\n## `other`\n", "node/lib/errors.cjs"),
            ("`completions-in-doubt`", "wit/leasehold.wit"),
            ("`record-gone`", "wit/leasehold.wit"),
            ("`unreachable`", "wit/leasehold.wit"),
            ("`storage-full`", "wit/leasehold.wit"),
            ("`73`", "cli/src/status.rs"),
            ("`wrong_host`", "cli/src/serve/reply.rs"),
        ] {
            let messages = flagged(&guide.replace(entry, ""));
            assert!(messages.iter().any(|message| message.contains(place)), "{entry}: {messages:?}");
        }
    }

    #[test]
    fn a_place_that_was_moved_is_flagged() {
        let findings = check("", |_| Some("pub enum ErrorKind {\n    Busy,\n}\n".to_owned()));
        let has_names = |finding: &&Finding| finding.message.contains("`Busy`");
        assert_eq!((findings.len(), findings.iter().filter(has_names).count()), (PLACES.len(), 1));
    }
}
