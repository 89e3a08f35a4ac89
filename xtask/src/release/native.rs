//! How native code that is published is compiled here: on Linux with the C library and the linker of Zig, so that it needs
//! no newer C library than the oldest that is supported, whatever this machine has.

use crate::interop::Environment;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Versions and hashes of Zig, of what calls it, and of what looks at the container file. The workflow installs them too.
const TOOLS: &str = "xtask/src/release/tools.txt";
const CONTAINER_FILE: &str = "docs/infra/Containerfile";
/// The oldest C library that is supported, and what wheels for it are called.
const GLIBC: &str = "2.17";
const WHEEL: &str = "manylinux2014";

/// The compiler for this machine's platform.
pub struct Native {
    zig: Option<Zig>,
}

struct Zig {
    /// Beside the tools.
    python: PathBuf,
    target: &'static str,
}

impl Native {
    /// Installs what is missing.
    pub fn install(steps: &mut Steps) -> Result<Native> {
        let target = match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => "x86_64-unknown-linux-gnu",
            ("linux", "aarch64") => "aarch64-unknown-linux-gnu",
            _ => return Ok(Native { zig: None }),
        };
        let tools = Environment {
            folder: run::target()?.join("release-tools"),
            requirements: vec![run::root().join(TOOLS)],
            imports: "ziglang, maturin",
        };
        let python = steps.timed("zig and others", || tools.install())?;
        let mut hadolint = Command::new(python.with_file_name("hadolint"));
        // Its packages have no versions: those of the image are taken.
        hadolint.args(["--ignore", "DL3018"]).arg(run::root().join(CONTAINER_FILE));
        steps.run("container file", hadolint)?;
        Ok(Native { zig: Some(Zig { python, target }) })
    }

    /// The command that compiles one package. Packages are compiled apart, each with the features of its own.
    pub fn build(&self, package: &str) -> Result<Command> {
        let mut build = match &self.zig {
            None => run::cargo_dist("build"),
            Some(zig) => {
                let mut build = run::cargo_dist("zigbuild");
                build.env("PATH", zig.path()?).args(["--target", &format!("{}.{GLIBC}", zig.target)]);
                build
            }
        };
        build.args(["-p", package]);
        Ok(build)
    }

    /// The folder with what was compiled.
    pub fn built(&self) -> Result<PathBuf> {
        match &self.zig {
            None => run::distributed(),
            Some(zig) => Ok(run::target()?.join(zig.target).join(run::DIST)),
        }
    }

    /// Has maturin, which is in `python`, compile a wheel in the same way.
    pub fn maturin(&self, python: &Path) -> Result<Command> {
        let Some(zig) = &self.zig else {
            let mut maturin = Command::new(python);
            maturin.args(["-m", "maturin", "build"]);
            return Ok(maturin);
        };
        let mut maturin = Command::new(&zig.python);
        maturin.args(["-m", "maturin", "build", "--zig", "--target", zig.target, "--compatibility", WHEEL]);
        maturin.env("PATH", zig.path()?);
        Ok(maturin)
    }

    /// Fails where a file of machine code asks for a newer C library than the oldest.
    pub fn check(&self, file: &Path) -> Result {
        if self.zig.is_none() {
            return Ok(());
        }
        let mut readelf = Command::new("readelf");
        readelf.args(["--version-info", "--wide"]).arg(file);
        let told = run::told("readelf", readelf)?;
        match newer(&told) {
            Some(version) => Err(Failure::new(format!("{} needs glibc {version}", file.display()))),
            None => Ok(()),
        }
    }
}

impl Zig {
    fn path(&self) -> Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.python.parent().map(Path::to_path_buf);
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
        path.map_err(|error| Failure::new(format!("the path cannot be extended: {error}")))
    }
}

/// A version of the C library in the output of `readelf` that is newer than the oldest.
fn newer(told: &str) -> Option<&str> {
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    let named = told.split_ascii_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    named.filter(|version| version.starts_with(|c: char| c.is_ascii_digit())).find(|v| numbers(v) > numbers(GLIBC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_c_library_is_named() {
        assert_eq!(newer("Name: GLIBC_2.2.5  Flags: none\n Name: GLIBC_2.17"), None);
        assert_eq!(newer("Name: GLIBC_2.2.5\n Name: GLIBC_2.28  Flags: none"), Some("2.28"));
        assert_eq!(newer("Name: GLIBC_PRIVATE"), None);
    }
}
