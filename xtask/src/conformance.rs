//! `cargo xtask conformance`: `docs/conformance.md`, which says what each store and each binding can do, and which test
//! shows it.
//!
//! The abilities of stores are read from the suite that all of them pass; those of bindings stand in a list beside this file,
//! where each "yes" names a test. The page is made of both, and after a run of all tests the tests that it names, and those
//! that `docs/threat-model.md` names, must be among those that have passed.

mod bindings;
mod page;
mod stores;

use crate::logs::{Logs, Reported};
use crate::named::Named;
use crate::run::{self, Failure, Result};
use crate::tidy;
use bindings::Bindings;
use stores::Stores;

const PAGE: &str = "docs/conformance.md";
const BINDINGS: &str = "xtask/src/conformance/bindings.txt";
const LACKS: &str = "xtask/src/conformance/stores.txt";
const SUITE: &str = "client/tests/conformance";

pub fn conformance(args: &[String]) -> Result {
    let is_blessed = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--bless"] => true,
        _ => {
            return Err(Failure::new(format!("`{}`: nothing but `--bless` may follow `conformance`", args.join(" "))));
        }
    };
    let page = page()?;
    let path = run::root().join(PAGE);
    if is_blessed {
        return std::fs::write(&path, page)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())));
    }
    if std::fs::read_to_string(&path).is_ok_and(|written| written == page) {
        println!("{PAGE} says what is tested");
        return Ok(());
    }
    Err(Failure::new(format!("{PAGE} is not what the tests say\n  to write it again: cargo xtask conformance --bless")))
}

fn page() -> Result<String> {
    Ok(page::write(&stores()?, &bindings()?))
}

fn stores() -> Result<Stores> {
    Stores::read(&read(LACKS)?, |file| read(&format!("{SUITE}/{file}")).ok()).map_err(|what| wrong(LACKS, &what))
}

fn bindings() -> Result<Bindings> {
    let bindings = Bindings::read(&read(BINDINGS)?).map_err(|what| wrong(BINDINGS, &what))?;
    let missing: Vec<_> = bindings.tests().filter_map(|test| test.expect_test(&run::root()).err()).collect();
    if missing.is_empty() { Ok(bindings) } else { Err(wrong(BINDINGS, &missing.join("\n  "))) }
}

/// # Errors
/// A test that a page names has not passed in this run.
pub fn expect_ran(logs: &Logs) -> Result {
    let reported = logs.reported()?;
    let named: Vec<Named> = bindings()?.tests().cloned().chain(tidy::threats()?).collect();
    let mut missing: Vec<String> = Vec::new();
    for test in &named {
        if !has_passed(&reported, |name| test.is_told_by(name)) {
            missing.push(format!("{}::{}", test.path, test.name));
        }
    }
    for test in stores()?.tests() {
        if !has_passed(&reported, |name| name == test) {
            missing.push(format!("{SUITE}: {test}"));
        }
    }
    missing.sort();
    missing.dedup();
    if missing.is_empty() {
        println!("{} tests are named, and have passed", named.len());
        return Ok(());
    }
    Err(Failure::new(format!(
        "these tests are named in documents, and none of them has passed:\n  {}",
        missing.join("\n  ")
    )))
}

fn has_passed(reported: &[Reported], is_it: impl Fn(&str) -> bool) -> bool {
    reported.iter().any(|told| told.has_passed && is_it(&told.name))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(run::root().join(path))
        .map_err(|error| Failure::new(format!("cannot read {path}: {error}")))
}

fn wrong(path: &str, what: &str) -> Failure {
    Failure::new(format!("{path}: {what}"))
}
