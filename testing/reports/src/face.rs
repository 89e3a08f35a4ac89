//! The public face of the crates that Rust users import: none of its signatures names a type of another crate.
//!
//! A type of a library with a version of its own would bind our versions to its versions: each of its breaking releases would be
//! one of ours. Read from what rustdoc says of a crate in JSON, which has no private and no hidden items.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Failure, Result};

/// The crates, and what each may show beside ours: the feature `rusqlite-0_41` has its version in its name.
const CRATES: [(&str, &[&str]); 2] = [("leasehold", &[]), ("leasehold_fence", &["rusqlite"])];
const OURS: [&str; 7] = ["std", "core", "alloc", "leasehold", "leasehold_core", "leasehold_fence", "leasehold_wire"];

/// Reads what rustdoc has left in this folder.
pub fn check(folder: &Path) -> Result {
    let mut foreign = Vec::new();
    for (name, allowed) in CRATES {
        let path = folder.join(format!("{name}.json"));
        let failed = |error: String| Failure::new(format!("cannot read {}: {error}", path.display()));
        let told = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let told: Value = serde_json::from_slice(&told).map_err(|error| failed(error.to_string()))?;
        let found = shown(&told, allowed).ok_or_else(|| failed("it has no index and no paths".to_owned()))?;
        foreign.extend(found.into_iter().map(|found| format!("{name}: {found}")));
    }
    if foreign.is_empty() {
        return Ok(());
    }
    let what = "types of other crates in public signatures; use one of our own, or hide the item";
    Err(Failure::new(format!("{what}:\n  {}", foreign.join("\n  "))))
}

/// The types and traits of other crates, each with an item that names it.
fn shown(told: &Value, allowed: &[&str]) -> Option<BTreeSet<String>> {
    let (index, paths) = (told["index"].as_object()?, told["paths"].as_object()?);
    let ours = index.values().filter(|item| item["crate_id"] == 0);
    // Those that every type has, if the crate of the trait is anywhere below.
    let of_all = |item: &Value| {
        item["inner"]["impl"]["blanket_impl"].is_object() || item["inner"]["impl"]["is_synthetic"] == true
    };
    let mut found = BTreeSet::new();
    for item in ours.filter(|item| !of_all(item)) {
        let mut named = Vec::new();
        gather(&item["inner"], &mut named);
        for path in named.into_iter().filter_map(|id| path_of(paths, id)) {
            let root = path.first().copied().unwrap_or_default();
            if !OURS.contains(&root) && !allowed.contains(&root) {
                found.insert(format!("{} in {:?}", path.join("::"), item["name"].as_str().unwrap_or_default()));
            }
        }
    }
    Some(found)
}

/// The ids of all paths that a signature has, and of what an item exports again.
fn gather(inner: &Value, named: &mut Vec<u64>) {
    match inner {
        Value::Object(object) => {
            if object.contains_key("path") || object.contains_key("source") {
                named.extend(object.get("id").and_then(Value::as_u64));
            }
            object.values().for_each(|value| gather(value, named));
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn path_of(paths: &Map<String, Value>, id: u64) -> Option<Vec<&str>> {
    paths.get(&id.to_string())?["path"].as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(name: Option<&str>, inner: Value, allowed: &[&str]) -> Vec<String> {
        let told = json!({
            "index": {"7": {"id": 7, "crate_id": 0, "name": name, "docs": "a \"path\"", "inner": inner}},
            "paths": {
                "1": {"crate_id": 0, "path": ["leasehold", "Guard"], "kind": "struct"},
                "2": {"crate_id": 9, "path": ["rusqlite", "Connection"], "kind": "struct"},
                "3": {"crate_id": 1, "path": ["std", "fs", "File"], "kind": "struct"},
                "4": {"crate_id": 8, "path": ["tracing", "Instrument"], "kind": "trait"},
            },
        });
        shown(&told, allowed).unwrap().into_iter().collect()
    }

    fn path(id: u64) -> Value {
        json!({"resolved_path": {"path": "It", "id": id, "args": null}})
    }

    #[test]
    fn types_of_other_crates_are_flagged() {
        let db = json!({"borrowed_ref": {"lifetime": null, "is_mutable": false, "type": path(2)}});
        let claim = json!({"function": {"sig": {"inputs": [["db", db]], "output": path(3)}}});
        assert_eq!(of(Some("claim"), claim.clone(), &[]), ["rusqlite::Connection in \"claim\""]);
        assert_eq!(of(Some("claim"), claim, &["rusqlite"]), [""; 0]);
        let exported =
            json!({"use": {"source": "rusqlite::Connection", "name": "Connection", "id": 2, "is_glob": false}});
        assert_eq!(of(None, exported, &[]).len(), 1);
        let of_an_error = json!({"impl": {
            "trait": {"path": "From", "id": 3, "args": {"angle_bracketed": {"args": [{"type": path(2)}]}}},
            "is_synthetic": false,
            "blanket_impl": null,
        }});
        assert_eq!(of(None, of_an_error, &[]).len(), 1);
    }

    #[test]
    fn ours_and_what_every_type_has_are_not() {
        assert_eq!(of(Some("open"), json!({"function": {"sig": {"inputs": [], "output": path(3)}}}), &[]), [""; 0]);
        let of_all = |is_synthetic: bool, blanket: Value| {
            json!({"impl": {
                "trait": {"path": "Instrument", "id": 4, "args": null},
                "is_synthetic": is_synthetic,
                "blanket_impl": blanket,
            }})
        };
        assert_eq!(of(None, of_all(false, Value::Null), &[]).len(), 1);
        assert_eq!(of(None, of_all(false, json!({"generic": "T"})), &[]), [""; 0]);
        assert_eq!(of(None, of_all(true, Value::Null), &[]), [""; 0]);
        let of_another_crate = json!({
            "index": {"7": {"id": 7, "crate_id": 8, "name": "poll", "inner": path(2)}},
            "paths": {"2": {"crate_id": 9, "path": ["rusqlite", "Connection"], "kind": "struct"}},
        });
        assert_eq!(shown(&of_another_crate, &[]), Some(BTreeSet::new()));
    }

    #[test]
    fn what_rustdoc_left_must_be_there() {
        assert!(check(Path::new("/nowhere")).is_err());
        assert_eq!(shown(&json!({"index": {}}), &[]), None);
    }
}
