//! Small libraries in C that are loaded into a server before its own: Linux only.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Program, write_file};

/// The compiled library, made once for each version of its source and kept beside the tests' programs.
#[track_caller]
pub(crate) fn library(name: &str, source: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let program = env::current_exe().unwrap_or_else(|error| panic!("where is this program? {error}"));
    let folder = program.parent().unwrap_or(Path::new(".")).to_owned();
    let library = folder.join(format!("libleasehold_rig_{name}-{:016x}.so", hasher.finish()));
    if !library.exists() {
        compile(name, source, &library);
    }
    library
}

/// Has a server that is about to start load the library, beside those that it has already.
#[track_caller]
pub(crate) fn install(command: &mut Command, name: &str, source: &str) {
    if !cfg!(target_os = "linux") {
        panic!("{name} is made by a preloaded library, which is done for Linux only");
    }
    let mut libraries = library(name, source).into_os_string();
    let before = command.get_envs().find(|(variable, _)| *variable == "LD_PRELOAD");
    if let Some((_, Some(others))) = before {
        libraries.push(":");
        libraries.push(others);
    }
    command.env("LD_PRELOAD", libraries);
}

#[track_caller]
fn compile(name: &str, source: &str, library: &Path) {
    let scratch = crate::process::folder();
    let source = write_file(scratch.path(), &format!("{name}.c"), source);
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
    assert!(output.status.success(), "`{compiler}` did not compile {name}.c:\n{said}");
    fs::rename(&unfinished, library).unwrap_or_else(|error| panic!("cannot write {}: {error}", library.display()));
}
