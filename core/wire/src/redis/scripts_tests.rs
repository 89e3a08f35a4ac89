//! The texts of all scripts.

use super::scripts::{SCRIPTS, Script};
use alloc::string::ToString;
use alloc::vec::Vec;

#[test]
fn every_script_goes_by_the_digest_of_its_text() {
    let digest = |script: &Script| sha1_smol::Sha1::from(script.text).digest().to_string();
    let wrong: Vec<_> = SCRIPTS.iter().filter(|script| script.sha1 != digest(script)).collect();
    let right: Vec<_> = wrong.iter().map(|script| (script.name, digest(script))).collect();
    assert!(right.is_empty(), "{right:#?}");
}

#[test]
fn numbers_and_names_reach_no_text() {
    for script in SCRIPTS {
        assert!(script.text.is_ascii() && !script.text.contains("tostring"), "{}", script.name);
        assert!(!script.text.contains("--"), "a comment would be sent along: {}", script.name);
    }
}
