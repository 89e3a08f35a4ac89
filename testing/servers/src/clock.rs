//! A wall clock of one server's own, which a test can move.

use std::fs::File;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::preload;
use crate::process::write_file;

const SOURCE: &str = include_str!("clock.c");

/// The offset that a server's preloaded clock reads, in a file that both map or write.
#[derive(Debug)]
pub(crate) struct Clock {
    path: PathBuf,
    file: File,
}

impl Clock {
    /// A clock that goes right, for a server with this folder.
    #[track_caller]
    pub(crate) fn new(folder: &Path) -> Self {
        let path = write_file(folder, "clock", 0_i64.to_ne_bytes());
        let file = File::options().write(true).open(&path);
        let file = file.unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
        Self { path, file }
    }

    /// Has a server that is about to start live by this clock.
    #[track_caller]
    pub(crate) fn install(&self, command: &mut Command) {
        preload::install(command, "clock", SOURCE);
        command.env("LEASEHOLD_RIG_CLOCK", &self.path);
    }

    /// Moves the clock to this many ms after the true time, or before it.
    #[track_caller]
    pub(crate) fn set(&self, offset_ms: i64) {
        // Eight aligned bytes, written at once: no reader sees half of them.
        #[cfg(unix)]
        let written = self.file.write_all_at(&offset_ms.to_ne_bytes(), 0);
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(&self.file, &offset_ms.to_ne_bytes(), 0);
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", self.path.display()));
    }
}
