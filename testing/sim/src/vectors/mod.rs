//! Golden vectors: scenarios of one client, written here in Rust, kept as JSON in `core/vectors/`, and played by every
//! language.
//!
//! [`recorded`] runs the scenarios with the present core; [`play`] reads only the files.

mod play;
mod released;
mod rows;
mod scenario;
mod scenarios;
pub mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub use play::{Way, play};
pub use released::{Release, releases};
pub use rows::{Rows, untaken};

use crate::format::Vector;

/// Files by name, with their texts.
pub type Files = BTreeMap<String, String>;

/// The folder in this repository. Cargo's variable comes first, since a copied build may carry another tree's path.
pub fn folder() -> PathBuf {
    let sim = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    sim.join("../../core/vectors")
}

/// The vectors of all scenarios with the present core.
///
/// # Panics
/// If two scenarios have the same name, or one does not reach the rows that it is about.
pub fn recorded() -> Files {
    let mut files = Files::new();
    for scenario in scenarios::ALL {
        let vector: Vector = scenario();
        let text = vector.to_text().unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        let before = files.insert(format!("{}.json", vector.name), text);
        assert!(before.is_none(), "two scenarios are called {:?}", vector.name);
    }
    files
}

/// The vectors of a folder.
///
/// # Errors
/// A file that cannot be read.
pub fn stored(folder: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

/// A difference between a file and its scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A scenario has no file yet.
    New,
    /// The file is out of date.
    Changed,
    /// The file has no scenario.
    Stale,
}

/// Every file that is not as it should be.
pub fn changes(stored: &Files, recorded: &Files) -> BTreeMap<String, Change> {
    let mut changes = BTreeMap::new();
    for (name, text) in recorded {
        match stored.get(name) {
            None => changes.insert(name.clone(), Change::New),
            Some(known) if known != text => changes.insert(name.clone(), Change::Changed),
            Some(_) => None,
        };
    }
    let stale = stored.keys().filter(|name| !recorded.contains_key(*name));
    changes.extend(stale.map(|name| (name.clone(), Change::Stale)));
    changes
}

/// Writes the vectors of all scenarios to the folder, and removes stale ones. Returns the changes.
///
/// # Errors
/// A file that cannot be read, written or removed; and a JSON file that is not a vector, before anything is changed.
pub fn bless(
    folder: &Path,
    recorded: &Files,
    parse: fn(&str) -> Result<(), String>,
) -> io::Result<BTreeMap<String, Change>> {
    fs::create_dir_all(folder)?;
    let stored = stored(folder)?;
    let changes = changes(&stored, recorded);
    for (name, text) in stored.iter().filter(|(name, _)| !recorded.contains_key(*name)) {
        parse(text).map_err(|error| {
            let what_to_do =
                "nothing was changed; if this is the folder of the vectors, move the file away or delete it";
            io::Error::new(io::ErrorKind::InvalidData, format!("{name} is no vector ({error}): {what_to_do}"))
        })?;
    }
    for name in changes.keys() {
        let path = folder.join(name);
        match recorded.get(name) {
            Some(text) => fs::write(path, text)?,
            None => fs::remove_file(path)?,
        }
    }
    Ok(changes)
}

/// Checks that a text is a vector.
///
/// # Errors
/// The reason why it is not.
pub fn check(text: &str) -> Result<(), String> {
    <Vector>::parse(text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn new_changed_and_stale_files_are_distinguished() {
        let stored = files(&[("a.json", "1"), ("b.json", "1"), ("c.json", "1")]);
        let recorded = files(&[("a.json", "1"), ("b.json", "2"), ("d.json", "1")]);
        let told: Vec<(String, Change)> = changes(&stored, &recorded).into_iter().collect();
        let told: Vec<(&str, Change)> = told.iter().map(|(name, change)| (name.as_str(), *change)).collect();
        assert_eq!(told, [("b.json", Change::Changed), ("c.json", Change::Stale), ("d.json", Change::New)]);
    }

    /// An empty folder of this test alone.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("leasehold-vectors-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn bless_keeps_other_files() {
        let folder = folder("leaves");
        fs::write(folder.join("README.md"), "for people").unwrap();
        let old = super::recorded().into_values().next().unwrap();
        fs::write(folder.join("old.json"), old).unwrap();
        let recorded = files(&[("new.json", "{\n}\n")]);
        assert_eq!(bless(&folder, &recorded, check).unwrap().len(), 2);
        assert_eq!(stored(&folder).unwrap(), recorded);
        assert!(folder.join("README.md").exists());
        assert_eq!(bless(&folder, &recorded, check).unwrap().len(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn bless_rejects_a_folder_with_other_json() {
        let folder = folder("refuses");
        let others = files(&[("package.json", "{\"name\": \"somebody's\"}")]);
        fs::write(folder.join("package.json"), &others["package.json"]).unwrap();
        let error = bless(&folder, &files(&[("new.json", "{\n}\n")]), check).unwrap_err().to_string();
        assert!(error.contains("package.json is no vector") && error.contains("move the file away"), "{error}");
        assert_eq!(stored(&folder).unwrap(), others);
        fs::remove_dir_all(&folder).unwrap();
    }
}
