//! The values of the WIT for languages without types of their own for it: generated once and checked in.
//!
//! Three files say the same: Rust types that the component's own conversions fill, beside how they are read and written
//! value by value; dataclasses for Python; and types for TypeScript.

mod model;
mod python;
mod rust;
mod typescript;
mod words;

use std::path::Path;

use crate::{Result, on, read, write};
use model::Model;

type Writer = fn(&Model) -> String;

const FILES: [(&str, Writer); 3] = [
    ("bindings/protocol/src/wit.rs", rust::write),
    ("python/leasehold/protocol/_values.py", python::write),
    ("node/lib/values.d.ts", typescript::write),
];

/// Writes the files below `root`.
pub(crate) fn generate(wit: &Path, root: &Path) -> Result {
    let model = Model::of(wit)?;
    FILES.iter().try_for_each(|(file, text)| write(&root.join(file), text(&model)))
}

/// Whether the files below `root` are what would be written.
pub(crate) fn check(wit: &Path, root: &Path) -> Result {
    let model = Model::of(wit)?;
    for (file, text) in FILES {
        let file = root.join(file);
        if text(&model).as_bytes() != read(&file)? {
            let wit = wit.display();
            return Err(on(&file, format!("is not what {wit} says; write it anew: cargo xtask component --bless")));
        }
    }
    Ok(())
}
