//! The page: tables, with the reason for each "no" below them.

use super::bindings::{Answer, Bindings};
use super::stores::{Behaviour, Store, Stores};
use std::fmt::Write;

const HEAD: &str = "\
<!-- Made by `cargo xtask conformance --bless`; do not edit. -->
# Conformance

`cargo xtask test` fails if this page differs from the tests, or if a test named here has not passed.

## Stores

One suite, `client/tests/conformance`, runs on every store. \"yes\" means that the behaviour is tested there. A number
leads to a note about a difference of the store. Of the behaviours on S3, on Google Cloud Storage, on Cosmos DB and on three clouds
as a quorum `cargo xtask test` runs a third each, and `cargo xtask prove long`, before a release, all.
";

const BINDINGS: &str = "
## Bindings

Each \"yes\" links to the file with the test; the title of the link is the name of the test.
";

/// Reasons, each of them once.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// The number of a note.
    fn number(&mut self, why: &str) -> usize {
        let known = self.0.iter().position(|note| note == why);
        known.unwrap_or_else(|| {
            self.0.push(why.to_owned());
            self.0.len() - 1
        }) + 1
    }

    fn write(&self, page: &mut String) {
        if !self.0.is_empty() {
            page.push('\n');
        }
        for (number, why) in self.0.iter().enumerate() {
            line(page, &format!("{}. {why}", number + 1));
        }
    }
}

pub fn write(stores: &Stores, bindings: &Bindings) -> String {
    let mut page = HEAD.to_owned();
    of_stores(stores, &mut page);
    page.push_str(BINDINGS);
    for section in &bindings.sections {
        let mut notes = Notes::default();
        line(&mut page, &format!("\n### {}\n", section.title));
        head(&mut page, bindings.bindings.iter().map(|(_, title)| title.as_str()));
        for ability in &section.abilities {
            row(&mut page, &ability.what, ability.answers.iter().map(|answer| cell(answer, &mut notes)));
        }
        notes.write(&mut page);
    }
    page
}

fn of_stores(stores: &Stores, page: &mut String) {
    let titles = || stores.stores.iter().map(|store| store.title.as_str());
    let mut notes = Notes::default();
    for (number, behaviour) in stores.behaviours.iter().enumerate() {
        let earlier = number.checked_sub(1).map(|before| &stores.behaviours[before].topic);
        if earlier != Some(&behaviour.topic) {
            line(page, &format!("\n### {}\n", in_words(&behaviour.topic)));
            head(page, titles());
        }
        let cells = stores.stores.iter().map(|store| of_store(store, behaviour, &mut notes));
        row(page, &in_words(&behaviour.name), cells);
    }
    line(page, "\n### Further abilities of stores\n");
    head(page, titles());
    for ability in &stores.abilities {
        let cells = stores.stores.iter().map(|store| match store.lacks.get(&ability.name) {
            Some(lack) => format!("no {}", superscript(notes.number(&lack.why))),
            None => "yes".to_owned(),
        });
        row(page, ability.what.trim_end_matches('.'), cells);
    }
    notes.write(page);
}

fn of_store(store: &Store, behaviour: &Behaviour, notes: &mut Notes) -> String {
    let lacks = behaviour.asks.iter().filter_map(|ability| store.lacks.get(ability));
    let (mut word, mut numbers) = ("yes", String::new());
    for lack in lacks {
        if lack.is_refused {
            word = "not offered";
        }
        let _ = write!(numbers, " {}", superscript(notes.number(&lack.why)));
    }
    format!("{word}{numbers}")
}

fn cell(answer: &Answer, notes: &mut Notes) -> String {
    match answer {
        Answer::Yes(test) => format!("[yes](../{} \"{}\")", test.path, test.name.replace('"', "'").replace('|', "\\|")),
        Answer::No(why) => format!("no {}", superscript(notes.number(why))),
    }
}

fn head<'a>(page: &mut String, titles: impl Iterator<Item = &'a str>) {
    let titles: Vec<_> = titles.collect();
    row(page, "", titles.iter().map(|title| (*title).to_owned()));
    line(page, &format!("|---|{}", "---|".repeat(titles.len())));
}

fn row(page: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<_> = cells.collect();
    line(page, &format!("| {first} | {} |", cells.join(" | ")));
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn superscript(number: usize) -> String {
    format!("<sup>{number}</sup>")
}

/// A name of the suite as a sentence begins.
fn in_words(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::stores::{Ability, Lack};
    use std::collections::BTreeMap;

    #[test]
    fn the_page_shows_who_does_what_and_why_not() {
        let behaviour = |name: &str, asks: &[&str]| Behaviour {
            topic: "grants".into(),
            name: name.into(),
            asks: asks.iter().map(|name| (*name).to_owned()).collect(),
        };
        let store = |name: &str, lacks: &[(&str, bool, &str)]| Store {
            name: name.into(),
            title: name.to_uppercase(),
            abilities: Vec::new(),
            together: false,
            lacks: lacks
                .iter()
                .map(|(name, is_refused, why)| {
                    ((*name).to_owned(), Lack { is_refused: *is_refused, why: (*why).to_owned() })
                })
                .collect::<BTreeMap<_, _>>(),
        };
        let stores = Stores {
            stores: vec![store("a", &[]), store("b", &[("Wake", false, "it polls"), ("Share", true, "alone")])],
            behaviours: vec![
                behaviour("one_holder", &[]),
                behaviour("it_wakes", &["Wake"]),
                behaviour("it_shares", &["Share"]),
            ],
            abilities: vec![Ability { name: "Wake".into(), what: "Wakes.".into() }],
        };
        let bindings = "binding a A\nbinding b B\n= Locks\n- to wait\na x/y.py::test_it\nb no never\n";
        let page = write(&stores, &Bindings::read(bindings).expect("a list"));
        for expected in [
            "### Grants\n\n|  | A | B |\n|---|---|---|\n| One holder | yes | yes |\n",
            "| It wakes | yes | yes <sup>1</sup> |\n| It shares | yes | not offered <sup>2</sup> |\n",
            "| Wakes | yes | no <sup>1</sup> |\n\n1. it polls\n2. alone\n",
            "| to wait | [yes](../x/y.py \"test_it\") | no <sup>1</sup> |\n\n1. never\n",
        ] {
            assert!(page.contains(expected), "{expected}\n---\n{page}");
        }
    }
}
