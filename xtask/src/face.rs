//! The public face of the crates that Rust users import: none of its signatures names a type of another crate.
//!
//! A type of a library with a version of its own would bind our versions to its versions: each of its breaking releases would be
//! one of ours. Read from what rustdoc says of a crate in JSON, which has no private and no hidden items.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::run::{Failure, Result};

/// The crates, and what each may show beside ours: the feature `rusqlite-0_41` has its version in its name.
pub const CRATES: [(&str, &[&str]); 2] = [("leasehold", &[]), ("leasehold_fence", &["rusqlite"])];
const OURS: [&str; 7] = ["std", "core", "alloc", "leasehold", "leasehold_core", "leasehold_fence", "leasehold_wire"];

/// Reads what rustdoc has left in this folder.
pub fn check(folder: &Path) -> Result {
    let mut foreign = Vec::new();
    for (name, allowed) in CRATES {
        let path = folder.join(format!("{name}.json"));
        let told = std::fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        foreign.extend(shown(&told, allowed).into_iter().map(|found| format!("{name}: {found}")));
    }
    if foreign.is_empty() {
        return Ok(());
    }
    let what = "types of other crates in public signatures; use one of our own, or hide the item";
    Err(Failure::new(format!("{what}:\n  {}", foreign.join("\n  "))))
}

/// The types and traits of other crates, each with an item that names it.
fn shown(told: &str, allowed: &[&str]) -> BTreeSet<String> {
    // Quotes within texts are escaped, so that none of these words is one of a text.
    let (items, paths) = told.split_once("\"paths\":{").unwrap_or((told, ""));
    let paths: BTreeMap<&str, &str> = paths
        .split("\"kind\":")
        .filter_map(|entry| {
            let (before, path) = entry.split_once(":{\"crate_id\":")?;
            let (_, path) = path.split_once("\"path\":[\"")?;
            Some((before.trim_end_matches('"').rsplit('"').next()?, path.split_once(']')?.0))
        })
        .collect();
    let mut found = BTreeSet::new();
    for item in items.split("\"crate_id\":").skip(1).filter_map(|item| item.strip_prefix("0,")) {
        // Those that every type has, if the crate of the trait is anywhere below.
        if item.contains("\"blanket_impl\":{") || item.contains("\"is_synthetic\":true,\"blanket_impl\"") {
            continue;
        }
        let name = item.split('"').nth(3).unwrap_or_default();
        let named = item.split("\"path\":\"").skip(1).chain(item.split("\"use\":{\"source\":\"").skip(1));
        for path in named.filter_map(|rest| rest.split_once("\"id\":")?.1.split([',', '}']).next()) {
            let Some(path) = paths.get(path).map(|path| path.trim_end_matches('"').replace("\",\"", "::")) else {
                continue;
            };
            let root = path.split("::").next().unwrap_or_default();
            if !OURS.contains(&root) && !allowed.contains(&root) {
                found.insert(format!("{path} in {name:?}"));
            }
        }
    }
    found
}

/// The arguments by which the stand-in for rustdoc knows these crates.
pub fn names() -> String {
    CRATES.map(|(name, _)| format!("*\" --crate-name {name} \"*")).join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: &str = r#""paths":{"1":{"crate_id":0,"path":["leasehold","Guard"],"kind":"struct"},"2":{"crate_id":9,"path":["rusqlite","Connection"],"kind":"struct"},"3":{"crate_id":1,"path":["std","fs","File"],"kind":"struct"},"4":{"crate_id":8,"path":["tracing","Instrument"],"kind":"trait"}},"external_crates":{}"#;

    fn of(items: &str) -> Vec<String> {
        shown(&format!("{{\"index\":{{{items}}},{PATHS}}}"), &[]).into_iter().collect()
    }

    #[test]
    fn types_of_other_crates_are_flagged() {
        let claim = r#""7":{"id":7,"crate_id":0,"name":"claim","docs":"x","inner":{"function":{"sig":{"inputs":[["db",{"borrowed_ref":{"type":{"resolved_path":{"path":"Connection","id":2,"args":null}}}}]],"output":{"resolved_path":{"path":"File","id":3}}}}}}"#;
        assert_eq!(of(claim), ["rusqlite::Connection in \"claim\""]);
        assert_eq!(shown(&format!("{claim},{PATHS}"), &["rusqlite"]).len(), 0);
        let exported = r#""8":{"id":8,"crate_id":0,"name":null,"inner":{"use":{"source":"rusqlite::Connection","name":"Connection","id":2,"is_glob":false}}}"#;
        assert_eq!(of(exported).len(), 1);
        let of_an_error = r#""9":{"id":9,"crate_id":0,"name":null,"inner":{"impl":{"trait":{"path":"From","id":3,"args":{"angle_bracketed":{"args":[{"type":{"resolved_path":{"path":"Connection","id":2,"args":null}}}]}}},"is_synthetic":false,"blanket_impl":null}}}"#;
        assert_eq!(of(of_an_error).len(), 1);
    }

    #[test]
    fn ours_and_what_every_type_has_are_not() {
        assert_eq!(
            of(
                r#""7":{"id":7,"crate_id":0,"name":"open","docs":"a \"path\":\"x\",\"id\":2","inner":{"resolved_path":{"path":"File","id":3,"args":null}}}"#
            ),
            [""; 0]
        );
        assert_eq!(
            of(
                r#""7":{"id":7,"crate_id":0,"name":null,"inner":{"impl":{"trait":{"path":"Instrument","id":4,"args":null},"is_synthetic":false,"blanket_impl":{"generic":"T"}}}}"#
            ),
            [""; 0]
        );
        assert_eq!(
            of(r#""7":{"id":7,"crate_id":8,"name":"poll","inner":{"resolved_path":{"path":"Connection","id":2}}}"#),
            [""; 0]
        );
    }

    #[test]
    fn what_rustdoc_left_must_be_there() {
        assert!(check(Path::new("/nowhere")).is_err());
    }
}
