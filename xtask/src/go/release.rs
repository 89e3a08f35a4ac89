//! The modules as they are tagged: with the generated code, which no repository has, and as a proxy of Go serves them.

use super::{ADAPTERS, MODULE, address, go_in, make, missing};
use crate::node::LICENSES;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the repository that are modules of their own, and not published.
const LEFT_OUT: [&str; 2] = ["interop", "tools"];
/// Systems beside this one for which the module must compile.
const SYSTEMS: [&str; 2] = ["darwin", "windows"];
const ZIPPER: &str = "./modzip";
/// A program of a user.
const PROGRAM: &str = "package main\n\nimport (\n\t\"fmt\"\n\n\tleasehold \"MODULE\"\n)\n\nfunc main() {\n\t_, err := \
                       leasehold.Connect(\"nowhere:\")\n\tfmt.Println(err)\n}\n";

/// Leaves the trees of the modules in `go` of `folder`, to be tagged `go/vVERSION` and so on, and in `index/go` the same as a proxy.
pub fn release(steps: &mut Steps, folder: &Path, version: &str) -> Result {
    if let Some(missing) = missing() {
        return steps.timed(&format!("NOT MADE: the Go modules, since {missing}"), || Ok(()));
    }
    make(steps)?;
    let (tree, proxy, version) = (folder.join("go"), folder.join("index/go"), format!("v{version}"));
    copy_tree(&run::root().join(MODULE), &tree)?;
    let address = address()?;
    for adapter in ADAPTERS {
        let name = adapter.trim_start_matches("go/");
        let mut edit = go_in(MODULE);
        edit.current_dir(tree.join(name)).args(["mod", "edit", &format!("-dropreplace={address}")]);
        edit.arg(format!("-require={address}@{version}"));
        run::quietly("manifest of a module", edit)?;
    }
    let modules = ADAPTERS.map(|adapter| adapter.trim_start_matches(MODULE));
    for name in modules.into_iter().chain([""]) {
        let at = tree.join(name.trim_start_matches('/'));
        for text in LICENSES {
            let (from, to) = (run::root().join(text), at.join(text));
            fs::copy(&from, &to).map_err(|error| failed("write", &to, &error))?;
        }
        let mut zip = go_in(super::TOOLS);
        zip.args(["run", ZIPPER, &format!("{address}{name}"), &version]).arg(&at).arg(&proxy);
        steps.run(&format!("module {address}{name}"), zip)?;
    }
    use_it(steps, &tree, &proxy, &address, &version)
}

/// Builds a program in an empty folder with what the proxy has, and the module for other systems.
fn use_it(steps: &mut Steps, tree: &Path, proxy: &Path, address: &str, version: &str) -> Result {
    let user = run::target()?.join("go/user");
    if user.exists() {
        fs::remove_dir_all(&user).map_err(|error| failed("empty", &user, &error))?;
    }
    fs::create_dir_all(&user).map_err(|error| failed("make", &user, &error))?;
    let (manifest, program) = (user.join("go.mod"), user.join("main.go"));
    fs::write(&manifest, "module example\n\ngo 1.25\n").map_err(|error| failed("write", &manifest, &error))?;
    fs::write(&program, PROGRAM.replace("MODULE", address)).map_err(|error| failed("write", &program, &error))?;
    let go = |args: &[&str]| {
        let mut command = Command::new("go");
        command.current_dir(&user).args(args).env("GOPROXY", format!("file://{}", proxy.display()));
        command.env("GOTOOLCHAIN", "local").env("GOSUMDB", "off").env("GOFLAGS", "-mod=mod").env("CGO_ENABLED", "0");
        // What an earlier run has left there under this version may be another thing.
        command.env("GOMODCACHE", user.join("modules")).env("GOFLAGS", "-mod=mod -modcacherw");
        command
    };
    steps.run("go get, in an empty folder", go(&["get", &format!("{address}@{version}")]))?;
    let said = run::told("a program of a user", go(&["run", "."]))?;
    if !said.contains("leasehold: ") {
        return Err(Failure::new(format!("a program of a user says {said:?}")));
    }
    for system in SYSTEMS {
        let mut build = go_in(MODULE);
        build.current_dir(tree).args(["build", "-race=false", "./..."]).env("GOOS", system).env("CGO_ENABLED", "0");
        steps.run_patiently(&format!("go build for {system}"), build)?;
    }
    Ok(())
}

/// Copies what is published.
fn copy_tree(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to).map_err(|error| failed("make", to, &error))?;
    let entries = fs::read_dir(from).map_err(|error| failed("list", from, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        let to: PathBuf = to.join(name);
        if name == ".gitignore" || LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        } else if path.is_dir() {
            copy_tree(&path, &to)?;
        } else {
            fs::copy(&path, &to).map_err(|error| failed("write", &to, &error))?;
        }
    }
    Ok(())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
