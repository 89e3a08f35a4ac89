//! The texts of all scripts.

use super::scripts::{SCRIPTS, Script};
use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, vec};
use leasehold_core::queue::RESERVED;
use leasehold_core::time::{OPEN_EVERY, OPEN_FOR, OPEN_WITHIN};

#[test]
fn every_script_goes_by_the_digest_of_its_text() {
    let digest = |script: &Script| sha1_smol::Sha1::from(script.text).digest().to_string();
    let wrong: Vec<_> = SCRIPTS.iter().filter(|script| script.sha1 != digest(script)).collect();
    let right: Vec<_> = wrong.iter().map(|script| (script.name, digest(script))).collect();
    assert!(right.is_empty(), "{right:#?}");
}

/// The scripts are texts, so the core's times stand in them once more.
#[test]
fn times_of_the_line_are_those_of_the_core() {
    let [reserved, open, all, due] =
        [RESERVED, OPEN_FOR, OPEN_EVERY + OPEN_WITHIN, OPEN_WITHIN].map(|time| time.as_millis());
    let texts = vec![
        ("release", format!("'PX', '{reserved}')")),
        ("release", format!("left <= {due}\n")),
        ("release", format!("opens and '+{open} '")),
        ("release", format!("opens and '{}' or '{all}'", all + open)),
        ("join", format!("left > {all} then")),
        ("join", format!("left - {all}\n")),
    ];
    for (name, text) in texts {
        let script = SCRIPTS.iter().find(|script| script.name == name).unwrap();
        assert!(script.text.contains(&text), "{name} has no {text:?}");
    }
}

#[test]
fn numbers_and_names_reach_no_text() {
    for script in SCRIPTS {
        assert!(script.text.is_ascii() && !script.text.contains("tostring"), "{}", script.name);
        assert!(!script.text.contains("--"), "a comment would be sent along: {}", script.name);
    }
}
