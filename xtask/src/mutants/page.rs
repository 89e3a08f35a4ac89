//! `docs/deliberate-bugs.md`: the bugs, and the tests that caught them in the last run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::patch::Patch;
use super::suite::{Catch, Suite};
use crate::run::{self, Failure, Result};

pub const PAGE: &str = "docs/deliberate-bugs.md";

const HEAD: &str = "\
# Deliberate bugs

Passing tests prove little unless we know which bugs they catch. Each row is a bug that somebody made, or nearly made,
in a lock. `cargo xtask mutants` applies each one, alone, to a copy of the source, and runs the suites until one fails.
All of them are caught. [The README of the bugs](../testing/sim/mutants/README.md) describes their format, and
`cargo xtask mutants --bless` writes this page.

*Seeds* is the number of random runs that the simulator needed.

";

/// The facts about each bug, by its name.
pub struct Page(BTreeMap<String, Row>);

#[derive(Debug, PartialEq, Eq)]
struct Row {
    why: String,
    by: String,
    seeds: String,
}

impl Page {
    /// As it is, without the bugs that are gone.
    pub fn read(all: &[Patch]) -> Self {
        let text = fs::read_to_string(path()).unwrap_or_default();
        let mut rows = parse(&text);
        rows.retain(|name, _| all.iter().any(|patch| patch.name == *name));
        Self(rows)
    }

    pub fn note(&mut self, patch: &Patch, suite: Suite, catch: &Catch) {
        let seeds = catch.seeds.map_or_else(String::new, |seeds| seeds.to_string());
        let by = format!("{}: {}", suite.name(), catch.by);
        self.0.insert(patch.name.clone(), Row { why: patch.why.clone(), by, seeds });
    }

    pub fn forget(&mut self, patch: &Patch) {
        self.0.remove(&patch.name);
    }

    pub fn write(&self) -> Result {
        let path = path();
        fs::write(&path, self.text()).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}| bug | what it breaks | caught by | seeds |\n|---|---|---|---:|\n");
        for (name, Row { why, by, seeds }) in &self.0 {
            _ = writeln!(text, "| `{name}` | {} | {} | {seeds} |", escaped(why), escaped(by));
        }
        text
    }
}

fn path() -> PathBuf {
    run::root().join(PAGE)
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}

fn parse(text: &str) -> BTreeMap<String, Row> {
    let rows = text.lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?.strip_suffix(" |")?.replace("\\|", "\0");
        let mut cells = cells.split(" | ").map(|cell| cell.replace('\0', "|"));
        let name = cells.next()?.strip_suffix('`')?.to_owned();
        Some((name, Row { why: cells.next()?, by: cells.next()?, seeds: cells.next()?.trim().to_owned() }))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::{FOLDER, patch};

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let row = |seeds: &str| Row { why: "a | b".into(), by: "core: t".into(), seeds: seeds.into() };
        let page = Page([("one".to_owned(), row("12")), ("two".to_owned(), row(""))].into());
        assert_eq!(parse(&page.text()), page.0);
    }

    #[test]
    fn the_page_tells_of_every_bug_as_it_is() {
        let all = patch::read_all(&run::root().join(FOLDER)).expect("they can be read");
        let rows = parse(&fs::read_to_string(path()).expect("the page is there"));
        let told: Vec<_> = rows.iter().map(|(name, row)| (name.as_str(), row.why.as_str())).collect();
        let written: BTreeMap<_, _> = all.iter().map(|patch| (patch.name.as_str(), patch.why.as_str())).collect();
        assert_eq!(
            told,
            written.into_iter().collect::<Vec<_>>(),
            "run `cargo xtask mutants --bless` with the new names"
        );
    }
}
