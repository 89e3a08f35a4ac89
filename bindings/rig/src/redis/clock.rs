//! A wall clock of one server's own, which a test can move.

use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Program, write_file};

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

/// The compiled library, made once for each version of its source and kept beside the tests' programs.
#[track_caller]
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        SOURCE.hash(&mut hasher);
        let program = env::current_exe().unwrap_or_else(|error| panic!("where is this program? {error}"));
        let folder = program.parent().unwrap_or(Path::new(".")).to_owned();
        let library = folder.join(format!("libleasehold_rig_clock-{:016x}.so", hasher.finish()));
        if !library.exists() {
            compile(&library);
        }
        library
    })
}

#[track_caller]
fn compile(library: &Path) {
    let scratch = crate::process::folder();
    let source = write_file(scratch.path(), "clock.c", SOURCE);
    // Under a name of its own until it is whole: other tests may be looking for it.
    let unfinished = library.with_extension(format!("{}.tmp", std::process::id()));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words).args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"]).arg(&unfinished).arg(source);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}", Program { name: "cc", debian_package: "gcc libc6-dev" }.complaint(&error));
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{compiler}` did not compile the clock:\n{said}");
    fs::rename(&unfinished, library).unwrap_or_else(|error| panic!("cannot write {}: {error}", library.display()));
}
