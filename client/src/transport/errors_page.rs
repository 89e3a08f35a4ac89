//! The page `docs/errors.md`: what passes and what is final, made from the tables by which errors are judged.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::path::Path;

use leasehold_core::op::{DenialKind, FaultKind};
use leasehold_wire::errors::{Means, Verdict, tables};

use super::sqlite::KNOWN_ERRORS;

const BEGIN: &str =
    "<!-- made from the tables of the code: LEASEHOLD_BLESS=1 cargo test -p leasehold --lib errors_page -->\n";
const END: &str = "<!-- end -->";

const MEANINGS: [(Means, &str); 12] = [
    (Means::Passes(FaultKind::Busy), "soon"),
    (Means::Mended(FaultKind::Server), "mended"),
    (Means::Elsewhere, "elsewhere"),
    (Means::TooMany, "too many"),
    (Means::Expired, "expired"),
    (Means::Unfinished, "unclear"),
    (Means::Login, "login"),
    (Means::Final(DenialKind::Permission), "right"),
    (Means::Final(DenialKind::Schema), "table"),
    (Means::Final(DenialKind::CorruptRecord), "record"),
    (Means::Final(DenialKind::StorageFull), "room"),
    (Means::Final(DenialKind::Other), "setup"),
];

/// The failures without an answer of the store, which all stores over the network share.
const WITHOUT_ANSWER: [(&str, Means, &str); 4] = [
    (
        "no connection: refused, no route, name not found, TLS or certificate",
        Means::Mended(FaultKind::Unreachable),
        "the url, the server, firewalls, DNS, certificates",
    ),
    ("no reply in time", Means::Unfinished, "the load of the store and the way there; `request_timeout`"),
    ("connection broken", Means::Unfinished, "restarts, failovers, proxies that close connections"),
    ("an answer that makes no sense", Means::Unfinished, "which server answers there, and which proxies are between"),
];

fn name(means: Means) -> &'static str {
    MEANINGS.iter().find(|(known, _)| known.reason() == means.reason()).map_or("setup", |(_, name)| *name)
}

fn verdict(means: Means) -> &'static str {
    match means.verdict() {
        Verdict::Passing => "passing",
        Verdict::Final => "**final**",
        Verdict::FinalAtFirst => "**final** at the first connect, then passing",
    }
}

fn made() -> String {
    let mut page = String::from("## The reasons\n\n| reason | in a wait | why |\n|---|---|---|\n");
    for (means, name) in MEANINGS {
        page += &format!("| {name} | {} | {} |\n", verdict(means), means.reason());
    }
    let mut section = |title: &str, rows: Vec<(String, Means, &str)>| {
        page += &format!(
            "\n## {title}\n\n| answer | in a wait | reason | what it is, or what to look at |\n|---|---|---|---|\n"
        );
        for (answer, means, advice) in rows {
            let advice = advice.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
            page += &format!("| {answer} | {} | {} | {advice} |\n", verdict(means), name(means));
        }
    };
    let plain = |(answer, means, advice): (&str, Means, &'static str)| (answer.to_owned(), means, advice);
    section("Every store over the network", WITHOUT_ANSWER.map(plain).into());
    for (store, answers) in tables() {
        let answers = answers.into_iter();
        let shown =
            answers.map(|(answer, known)| (format!("`{}`", answer.replace('`', "")), known.means, known.advice));
        section(store, shown.collect());
    }
    section("SQLite", KNOWN_ERRORS.map(plain).into());
    page
}

#[test]
fn the_page_says_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark of the beginning");
    let (found, after) = rest.split_once(END).expect("the mark of the end");
    let made = format!("\n{}\n", made());
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert!(found == made, "docs/errors.md is not what the tables say; the comment in it says how to write it again");
}

#[test]
fn each_meaning_has_a_name_of_its_own() {
    for (store, answers) in tables() {
        for (answer, known) in answers {
            let is_named = MEANINGS.iter().any(|(means, _)| means.reason() == known.means.reason());
            assert!(is_named, "{store}: {answer}");
        }
    }
}
