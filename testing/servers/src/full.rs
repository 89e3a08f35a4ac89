//! A disk of one server's own, which a test can fill.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::preload;

const SOURCE: &str = include_str!("full.c");

/// The disk of a server: full for whatever would grow, while a file is there.
#[derive(Debug)]
pub(crate) struct Disk {
    full: PathBuf,
}

impl Disk {
    /// A disk with room, for a server with this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { full: folder.join("full") }
    }

    /// Has a server that is about to start live on this disk.
    #[track_caller]
    pub(crate) fn install(&self, command: &mut Command) {
        preload::install(command, "full", SOURCE);
        command.env("LEASEHOLD_RIG_FULL", &self.full);
    }

    /// Fills it, or makes room.
    #[track_caller]
    pub(crate) fn set(&self, is_full: bool) {
        let done = if is_full { fs::write(&self.full, "") } else { fs::remove_file(&self.full) };
        done.unwrap_or_else(|error| panic!("{}: {error}", self.full.display()));
    }
}
