//! `cargo xtask mutants`: bugs made on purpose, a line or few each, in a copy of the workspace. Each must be caught.
//!
//! Tests that pass prove little as long as nobody knows what they would catch.

mod page;
mod patch;
mod suite;
mod tree;

use std::collections::BTreeSet;
use std::time::Instant;

use crate::run::{self, Failure, Result};
use page::Page;
use patch::Patch;
use suite::{Catch, Suite};
use tree::Tree;

/// Where the bugs are described.
const FOLDER: &str = "testing/sim/mutants";

pub fn mutants(args: &[String]) -> Result {
    let all = patch::read_all(&run::root().join(FOLDER))?;
    if args.iter().any(|arg| arg == "--list") {
        all.iter().for_each(|patch| println!("{:42} {}", patch.name, patch.why));
        return Ok(());
    }
    let names: Vec<String> = args.iter().filter(|arg| *arg != "--bless").cloned().collect();
    let mut page = (names.len() < args.len()).then(|| Page::read(&all));
    let chosen = chosen(all, &names)?;
    for patch in &chosen {
        could_be_caught(patch)?;
    }
    let folder = run::built()?.parent().map(|target| target.join("mutants"));
    let folder = folder.ok_or_else(|| Failure::new("the target folder has no place for a copy"))?;
    let tree = Tree::copy(&folder)?;

    let width = chosen.iter().map(|patch| patch.name.len()).max().unwrap_or(0);
    println!("{:width$}  {:>6}  {:>7}  caught by; what it breaks", "deliberate bug", "seeds", "seconds");
    let (mut sound, mut wrong) = (BTreeSet::new(), Vec::new());
    for patch in &chosen {
        let start = Instant::now();
        let result = caught(patch, &tree, &mut sound);
        let seconds = start.elapsed().as_secs_f64();
        if let Some(page) = &mut page {
            match &result {
                Ok(Some((suite, catch))) => page.note(patch, *suite, catch),
                // A catch that is no more must not stand there.
                Ok(None) | Err(_) => page.forget(patch),
            }
            // At once: all of them together take long.
            page.write()?;
        }
        let (seeds, by) = match &result {
            Ok(Some((suite, Catch { by, seeds }))) => {
                (seeds.map_or_else(|| "-".into(), |seeds| seeds.to_string()), format!("{}: {by}", suite.name()))
            }
            Ok(None) => ("-".into(), "NOBODY".into()),
            Err(failure) => ("-".into(), format!("ERROR {failure}")),
        };
        println!(
            "{:width$}  {seeds:>6}  {seconds:>7.1}  {by}\n{:width$}                   {}",
            patch.name, "", patch.why
        );
        if !matches!(result, Ok(Some(_))) {
            wrong.push(patch.name.as_str());
        }
    }
    if page.is_some() {
        println!("\n{} was written", page::PAGE);
    }
    if wrong.is_empty() {
        println!("\nEach of {} deliberate bugs was caught.", chosen.len());
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} of {} deliberate bugs were not caught: {}",
        wrong.len(),
        chosen.len(),
        wrong.join(", ")
    )))
}

fn chosen(all: Vec<Patch>, names: &[String]) -> Result<Vec<Patch>> {
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|patch| patch.name == **name)) {
        return Err(Failure::new(format!("there is no deliberate bug `{unknown}`; --list names those there are")));
    }
    Ok(all.into_iter().filter(|patch| names.is_empty() || names.contains(&patch.name)).collect())
}

/// Told before anything is compiled: a bug whose line has changed, or whose hunter is gone.
fn could_be_caught(patch: &Patch) -> Result {
    let root = run::root();
    let text = std::fs::read_to_string(root.join(&patch.file))
        .map_err(|error| Failure::new(format!("the deliberate bug `{}` is in {}: {error}", patch.name, patch.file)))?;
    patch.apply(&text)?;
    match patch.suites.iter().find(|suite| !suite::exists(**suite, &root)) {
        None => Ok(()),
        Some(gone) => Err(Failure::new(format!(
            "the deliberate bug `{}` is to be caught by {}, which is gone",
            patch.name,
            gone.name()
        ))),
    }
}

/// The first that catches it. `sound` remembers who was seen to be content with the source as it is.
fn caught(patch: &Patch, tree: &Tree, sound: &mut BTreeSet<Suite>) -> Result<Option<(Suite, Catch)>> {
    for suite in patch.suites.iter().copied() {
        // A suite that fails without a bug would catch them all.
        if !sound.contains(&suite) {
            if let Some(Catch { by, .. }) = suite.catches(tree)? {
                return Err(Failure::new(format!("{} fails without any bug: {by}", suite.name())));
            }
            sound.insert(suite);
        }
        if let Some(catch) = tree.with(patch, |tree| suite.catches(tree))? {
            return Ok(Some((suite, catch)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_means_nothing_is_told() {
        let text = "why: x\nfile: x.rs\nfrom: a\nto: b\n";
        let all = || vec![Patch::parse("one", text).expect("complete"), Patch::parse("two", text).expect("complete")];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(all(), &[]).expect("all of them").len(), 2);
        let one = chosen(all(), &names(&["two"])).expect("it is there");
        assert_eq!(one.iter().map(|patch| patch.name.as_str()).collect::<Vec<_>>(), ["two"]);
        let failure = chosen(all(), &names(&["one", "three"])).expect_err("there is no such bug");
        assert!(failure.to_string().contains("`three`"), "{failure}");
    }
}
