//! The values of the WIT for languages without types of their own for it: generated once and checked in.
//!
//! Three folders say the same: Rust types that the component's own conversions fill, beside how they are read and written
//! value by value; dataclasses for Python; and types for TypeScript. Each has a file for an interface, or several.

mod model;
mod python;
mod rust;
mod typescript;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::{Result, on, read, write};
pub(crate) use model::{Call, Case, Field, Interface, Kind, Model, Named, Place, Ty};
pub(crate) use words::{Quoting, class, quoted, wrapped};

/// Where below its folder, and what is in it.
type File = (String, String);
type Writer = fn(&Model) -> Vec<File>;

/// Everything in these folders is generated.
const FOLDERS: [(&str, Writer); 3] = [
    ("bindings/protocol/src/wit", rust::write),
    ("python/leasehold/protocol/_values", python::write),
    ("node/lib/values", typescript::write),
];
/// The packages of these languages have clients of a test clock, whose store is in memory.
const LEFT_OUT: [&str; 1] = ["memory"];
/// As many as a file may have that somebody wrote.
const MOST_LINES: usize = 600;

/// Writes the files below `root`, and removes those that the WIT no longer asks for.
pub(crate) fn generate(wit: &Path, root: &Path) -> Result {
    let model = Model::without(wit, &LEFT_OUT)?;
    for (folder, writer) in FOLDERS {
        let (folder, files) = (root.join(folder), files(&model, writer)?);
        for stale in stale(&folder, &files)? {
            fs::remove_file(&stale).map_err(|error| on(&stale, error))?;
        }
        for (name, text) in files {
            let file = folder.join(name);
            let above = file.parent().unwrap_or(&folder);
            fs::create_dir_all(above).map_err(|error| on(above, error))?;
            write(&file, text)?;
        }
    }
    Ok(())
}

/// Checks that the files below `root` are those that would be written, and no others.
pub(crate) fn check(wit: &Path, root: &Path) -> Result {
    let model = Model::without(wit, &LEFT_OUT)?;
    for (folder, writer) in FOLDERS {
        let (folder, files) = (root.join(folder), files(&model, writer)?);
        let differ = |file: &Path| on(file, format!("is not what {} says; {ANEW}", wit.display()));
        if let Some(stale) = stale(&folder, &files)?.first() {
            return Err(differ(stale));
        }
        for (name, text) in files {
            let file = folder.join(name);
            // What is missing differs as well.
            if !file.exists() || text.as_bytes() != read(&file)? {
                return Err(differ(&file));
            }
        }
    }
    Ok(())
}

const ANEW: &str = "write it again: cargo xtask component --bless";

fn files(model: &Model, writer: Writer) -> Result<Vec<File>> {
    let files = writer(model);
    match files.iter().find(|(_, text)| text.lines().count() > MOST_LINES) {
        Some((name, text)) => {
            let lines = text.lines().count();
            Err(format!("{name} would have {lines} lines, more than {MOST_LINES}; have its writer split it"))
        }
        None => Ok(files),
    }
}

/// Files in the folder that are none of these.
fn stale(folder: &Path, files: &[File]) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    if folder.exists() {
        list(folder, &mut found).map_err(|error| on(folder, error))?;
    }
    for (name, _) in files {
        found.remove(&folder.join(name));
    }
    Ok(found)
}

fn list(folder: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            // Python leaves it beside what it has imported.
            true if path.ends_with("__pycache__") => {}
            true => list(&path, found)?,
            false => drop(found.insert(path)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removed at the end, if all went well.
    fn generated(name: &str, test: impl FnOnce(&Path, &Path)) {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/leasehold.wit");
        let root = std::env::temp_dir().join(format!("leasehold-values-{name}-{}", std::process::id()));
        generate(&wit, &root).unwrap();
        test(&wit, &root);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn files_that_differ_are_missing_or_are_too_many_are_noticed_and_put_right() {
        generated("stale", |wit, root| {
            assert_eq!(check(wit, root), Ok(()));
            let of = |folder: usize, name: &str| root.join(FOLDERS[folder].0).join(name);
            for (file, text) in [
                (of(0, "client/values.rs"), Some("// Somebody was here.")),
                (of(0, "mod.rs"), None),
                (of(0, "gone/calls.rs"), Some("")),
                (of(1, "gone.py"), Some("")),
                (of(2, "gone.d.ts"), Some("")),
            ] {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                match text {
                    Some(text) => fs::write(&file, text).unwrap(),
                    None => fs::remove_file(&file).unwrap(),
                }
                let error = check(wit, root).unwrap_err();
                assert!(error.starts_with(&format!("{}: is not what", file.display())), "{error}");
                generate(wit, root).unwrap();
                assert_eq!(check(wit, root), Ok(()));
            }
        });
    }

    #[test]
    fn what_python_compiles_beside_its_modules_is_no_business_of_ours() {
        generated("cache", |wit, root| {
            let cache = root.join(FOLDERS[1].0).join("__pycache__");
            fs::create_dir(&cache).unwrap();
            fs::write(cache.join("types.pyc"), "").unwrap();
            assert_eq!(check(wit, root), Ok(()));
        });
    }
}
