//! A wall clock of one server's own, which a test can move.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::preload;
use crate::process::write_file;

const SOURCE: &str = include_str!("clock.c");

/// The offset that a server's preloaded clock reads, in a file that both map or write.
#[derive(Debug)]
pub(super) struct Clock {
    path: PathBuf,
    file: File,
}

impl Clock {
    /// A clock that goes right, for a server with this folder.
    #[track_caller]
    pub(super) fn new(folder: &Path) -> Self {
        if !cfg!(target_os = "linux") {
            panic!("clocks are moved by a preloaded library, which is done for Linux only");
        }
        let path = write_file(folder, "clock", 0_i64.to_ne_bytes());
        let file = File::options().write(true).open(&path);
        let file = file.unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
        Self { path, file }
    }

    /// Has a server that is about to start live by this clock.
    #[track_caller]
    pub(super) fn install(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env("LEASEHOLD_RIG_CLOCK", &self.path);
    }

    /// Moves the clock to this many ms after the true time, or before it.
    #[track_caller]
    pub(super) fn set(&self, offset_ms: i64) {
        // Eight aligned bytes, written at once: no reader sees half of them.
        let written = self.file.write_all_at(&offset_ms.to_ne_bytes(), 0);
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", self.path.display()));
    }
}

/// The compiled library.
#[track_caller]
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| preload::library("clock", SOURCE))
}
