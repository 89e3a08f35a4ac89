//! The toolchain that compiles for bare WebAssembly on this machine.

use super::GUESTS;
use crate::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's own Rust, which is kept up to date for browsers and brings the sources of its library.
pub const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
pub const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SYSROOT: &str = "/usr";
/// Below a sysroot, where the sources of the library are.
const LIBRARY: &str = "lib/rustlib/src/rust/library/core/src/lib.rs";

#[derive(Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The usual one has the library for the target.
    Installed,
    /// The usual one has the sources of its library, which are compiled as well.
    Source,
    /// Debian's, with its sources; it has no linker for the target, which the usual one has.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// In this order.
    pub fn find() -> Option<Toolchain> {
        let target_libraries = ask(&["--print", "target-libdir", "--target", TARGET]);
        if target_libraries.is_some_and(|folder| has_core(&folder)) {
            return Some(Toolchain::Installed);
        }
        let sysroot = ask(&["--print", "sysroot"]);
        if sysroot.as_ref().is_some_and(|sysroot| sysroot.join(LIBRARY).is_file()) {
            return Some(Toolchain::Source);
        }
        let is_there = [DEBIAN_RUSTC, DEBIAN_CARGO].iter().all(|path| Path::new(path).is_file());
        let is_there = is_there && Path::new(DEBIAN_SYSROOT).join(LIBRARY).is_file();
        let linker = sysroot.filter(|_| is_there).and_then(|sysroot| linker(&sysroot))?;
        Some(Toolchain::Debian { linker })
    }

    /// `cargo <subcommand>` for the components, in their folder.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match self {
            Toolchain::Installed => run::cargo(subcommand),
            Toolchain::Source => {
                let mut command = run::cargo(subcommand);
                with_library(&mut command);
                command
            }
            Toolchain::Debian { linker } => {
                let mut command = Command::new(DEBIAN_CARGO);
                command.args([subcommand, "--locked"]).env("RUSTC", DEBIAN_RUSTC);
                command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                with_library(&mut command);
                command
            }
        };
        command.current_dir(run::root().join(GUESTS));
        command
    }
}

/// Compiling the library is not a promise that Rust makes, so it has to be asked for.
fn with_library(command: &mut Command) {
    command.arg("-Zbuild-std=core,alloc,panic_abort").env("RUSTC_BOOTSTRAP", "1");
}

/// An answer of the usual compiler about itself.
pub fn ask(question: &[&str]) -> Option<PathBuf> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = rustc.args(question).current_dir(run::root()).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !path.trim().is_empty()).then(|| PathBuf::from(path.trim()))
}

/// The folder is named even where it is not there.
pub fn has_core(folder: &Path) -> bool {
    files(folder).any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

/// The linker that comes with a toolchain, for whatever it is made for.
fn linker(sysroot: &Path) -> Option<PathBuf> {
    files(&sysroot.join("lib/rustlib")).map(|host| host.join("bin/rust-lld")).find(|path| path.is_file())
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_library_that_is_there_is_not_compiled() {
        assert_eq!(words(&Toolchain::Installed.cargo("build")), "build --locked");
        assert_eq!(words(&Toolchain::Source.cargo("build")), "build --locked -Zbuild-std=core,alloc,panic_abort");
    }

    #[test]
    fn debian_links_with_the_usual_toolchain() {
        let command = Toolchain::Debian { linker: "/somewhere/rust-lld".into() }.cargo("build");
        assert_eq!(command.get_program(), DEBIAN_CARGO);
        let variables: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?))).collect();
        assert!(variables.contains(&("RUSTC", DEBIAN_RUSTC.as_ref())), "{variables:?}");
        let linker = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER";
        assert!(variables.contains(&(linker, "/somewhere/rust-lld".as_ref())), "{variables:?}");
    }

    #[test]
    fn a_folder_that_is_only_named_has_no_library() {
        assert!(!has_core(Path::new("/nowhere/at-all")));
    }
}
