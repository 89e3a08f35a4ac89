//! The guest's side of the WIT as Rust: generated once and checked in, so that building the component generates nothing.

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::Opts;

use crate::{Result, on, read};

/// The text of the module that stands for the WIT, a file or a folder with one world, in the guest.
pub(crate) fn generate(wit: &Path) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).map_err(|error| on(wit, format!("{error:#}")))?;
    let world = resolve.select_world(&[package], None).map_err(|error| on(wit, format!("{error:#}")))?;
    let options = Opts {
        format: true,
        generate_all: true,
        // Only C's libraries have constructors.
        disable_run_ctors_once_workaround: true,
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).map_err(|error| on(wit, format!("{error:#}")))?;
    let mut files = files.iter();
    match (files.next(), files.next()) {
        (Some((_, text)), None) => Ok(text.to_vec()),
        (_, _) => Err("the generator is expected to write one file".to_owned()),
    }
}

/// Whether the file is what would be written.
pub(crate) fn check(wit: &Path, file: &Path) -> Result {
    if generate(wit)? == read(file)? {
        return Ok(());
    }
    Err(on(file, format!("is not what {} says; write it anew: cargo xtask component --bless", wit.display())))
}
