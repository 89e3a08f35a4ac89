//! The host in C: wasmtime's headers from its crate, wasmtime itself from its Python package, and the system's compiler.

use crate::interop::Peers;
use crate::run::{self, Failure, Result};
use crate::setup;
use crate::steps::Steps;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "bindings/component/hosts/c";
/// Has the headers, for the version that follows.
const HEADERS: &str = "wasmtime-c-api-impl-";
const ASK: &str =
    "from importlib.metadata import version; from wasmtime._ffi import dll; print(version('wasmtime'), dll._name)";
const MODULES: [&str; 4] = ["value", "machine", "http", "host"];
const PROGRAMS: [&str; 3] = ["lock", "guard", "bench"];
/// A warning is a mistake. The headers have some of their own, so they count as the system's.
const FLAGS: [&str; 4] = ["-std=c11", "-Wall", "-Wextra", "-Werror"];

/// How the programs are compiled.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// As for use.
    Plain,
    /// With what C does not tell by itself: bytes outside of what they belong to, what is freed twice or never, overflows.
    Checked,
}

impl Build {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Build::Plain => &["-O2"],
            Build::Checked => &["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::Checked => "checked",
        }
    }
}

/// The folder with a folder for each of the builds.
pub fn folder() -> Result<PathBuf> {
    Ok(super::folder()?.join("c"))
}

/// Compiles the programs, and answers the folder that they are in.
pub fn build(steps: &mut Steps, peers: &Peers, build: Build) -> Result<PathBuf> {
    setup::c_compiler()?;
    let folder = folder()?.join(build.folder());
    fs::create_dir_all(&folder).map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let said = peers.ask_python(ASK)?;
    let (version, library) = said.split_once(' ').unwrap_or_default();
    let library = Path::new(library);
    let (Some(beside), Some(name)) = (library.parent(), library.file_name()) else {
        return Err(Failure::new(format!("`{said}` is no version and library of wasmtime")));
    };
    let headers = steps.timed("headers of wasmtime for C", || headers(version))?;
    let sources = run::root().join(SOURCES);
    let compile = || {
        let mut cc = setup::compile();
        cc.args(FLAGS).args(build.flags()).arg("-I").arg(sources.join("include")).arg("-isystem").arg(&headers);
        cc.current_dir(&folder);
        cc
    };
    // Once for all programs, into files beside them.
    let mut modules = compile();
    modules.arg("-c").args(MODULES.map(|module| sources.join(module).with_extension("c")));
    steps.run(&format!("compile the host, in C, {}", build.folder()), modules)?;
    for program in PROGRAMS {
        let mut cc = compile();
        cc.arg(sources.join(program).with_extension("c")).args(MODULES.map(|module| format!("{module}.o")));
        cc.arg("-o").arg(program).arg("-L").arg(beside);
        cc.arg(format!("-l:{}", name.to_string_lossy())).arg(format!("-Wl,-rpath,{}", beside.display()));
        steps.run(&format!("compile {program}, in C, {}", build.folder()), cc)?;
    }
    Ok(folder)
}

/// Cargo downloads the crate and checks it, and says where it is.
fn headers(version: &str) -> Result<PathBuf> {
    let wanted = format!("{HEADERS}{version}");
    let mut metadata = run::cargo("metadata");
    metadata.args(["--format-version", "1", "--filter-platform", &host()?, "--manifest-path"]);
    metadata.arg(run::root().join(SOURCES).join("Cargo.toml"));
    let said = answer(metadata)?;
    let manifest = said.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = manifest.map(Path::new).find(|path| path.to_string_lossy().contains(&wanted));
    let include = manifest.and_then(Path::parent).map(|folder| folder.join("include"));
    include.ok_or_else(|| {
        Failure::new(format!("{SOURCES}/Cargo.toml does not name {wanted}, the version that the Python package has"))
    })
}

fn host() -> Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "host-tuple"]);
    Ok(answer(rustc)?.trim().to_owned())
}

fn answer(mut command: Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(Failure::new(format!("{command:?} failed ({})", output.status))),
        Err(error) => Err(Failure::new(format!("{command:?} failed ({error})"))),
    }
}
