//! The protocol as a package of Go: its types, and calls that lower and lift them straight in the memory of the core module.
//!
//! The module itself becomes Go by another tool, wasm2go, which makes identifiers of names. So the names of what the module
//! imports and exports are made plain first; both halves agree on them in [`names`].

mod calls;
mod layout;
mod memory;
mod module;
mod names;
mod types;

use std::fs;
use std::path::Path;

use crate::values::{Interface, Model};
use crate::{Result, on, read, write};

const HEAD: &str = "// Code generated from wit/leasehold.wit by `cargo xtask go`. DO NOT EDIT.\n\npackage core\n";
/// Below the folder: the module for wasm2go, which writes its package beside it.
const MODULE: &str = "wasm/core.wasm";

/// Writes the package into `folder`; `package` is the path by which Go imports that folder.
pub(crate) fn generate(wit: &Path, module: &Path, package: &str, folder: &Path) -> Result {
    let model = Model::of(wit)?;
    let (renamed, exported) = module::rename(&read(module)?, &model)?;
    let renamed_path = folder.join(MODULE);
    let above = renamed_path.parent().unwrap_or(folder);
    fs::create_dir_all(above).map_err(|error| on(above, error))?;
    write(&renamed_path, renamed)?;
    for interface in &model.interfaces {
        write(&folder.join(format!("{}.go", interface.name)), text(&model, interface, &exported))?;
    }
    write(&folder.join("cases.go"), HEAD.to_owned() + "\nimport \"reflect\"\n" + &types::cases(&model))?;
    let shared = memory::SHARED.replace("PACKAGE", package).replace("HOST\n", &calls::host(&model));
    write(&folder.join("core.go"), HEAD.to_owned() + &shared)
}

fn text(model: &Model, interface: &Interface, exported: &[String]) -> String {
    let mut out = HEAD.to_owned();
    for named in &interface.types {
        types::declare(model, named, &mut out);
        memory::write(model, named, &mut out);
    }
    calls::write(model, interface, exported, &mut out);
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
