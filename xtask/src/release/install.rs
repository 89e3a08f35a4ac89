//! `cargo xtask release install`: an index of what was built, and its use from empty folders, as users install from the
//! public indexes: `pip install leasehold`, `npm install leasehold`, `cargo add leasehold`, and then the first lock.
//!
//! Nothing else is within reach of these commands: no cache, no other index.

use super::{fail, read};
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const INDEX: &str = "xtask/src/release/index.py";
/// Below the release files.
const FOLDER: &str = "index";
/// Pages that begin with a program that takes a lock.
const PYTHON_PAGE: &str = "docs/start-python.md";
const NODE_PAGE: &str = "docs/start-node.md";
const RUST_PROGRAM: &str = "examples/rust/src/bin/worker.rs";
/// Of the command, which comes with the packages.
const EXEC: [&str; 7] = ["exec", "--store", "sqlite:locks.db", "invoice/42", "--", "echo", "held"];
/// Settings of people that would lead elsewhere.
const SETTINGS: [&str; 8] =
    ["PIP_", "npm_config_", "NPM_CONFIG_", "CARGO_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/// Makes the index of the release files in a folder, and installs from it.
pub fn install(steps: &mut Steps, release: &Path) -> Result {
    let index = release.join(FOLDER);
    // Not below this workspace, whose settings would count there.
    let empty = made(&std::env::temp_dir().join(format!("leasehold-release-{}", std::process::id())))?;
    fs::create_dir_all(&index).map_err(|error| fail("make", &index, &error))?;
    let server = Server::start(&index.join("npm"))?;
    steps.timed("index", || write(release, &server.url))?;
    steps.timed("pip install leasehold", || with_pip(&index.join("pypi/simple"), &made(&empty.join("pip"))?))?;
    steps.timed("npm install leasehold", || with_npm(&server.url, &made(&empty.join("npm"))?))?;
    drop(server);
    with_cargo(steps, &index.join("cargo"), &made(&empty.join("cargo"))?)?;
    fs::remove_dir_all(&empty).map_err(|error| fail("remove", &empty, &error))
}

/// Makes the index of a folder's files, with what crates for all platforms need. npm's part will be served at the url.
pub fn write(release: &Path, url: &str) -> Result {
    let index = release.join(FOLDER);
    let mut metadata = run::cargo("metadata");
    metadata.args(["--format-version", "1"]);
    let metadata = run::told("cargo metadata", metadata)?;
    let file = index.with_extension("json");
    fs::write(&file, metadata).map_err(|error| fail("write", &file, &error))?;
    let input = fs::File::open(&file).map_err(|error| fail("read", &file, &error))?;
    let mut python = Command::new("python3");
    python.arg("-B").arg(run::root().join(INDEX)).args([release, &index]).arg(url).stdin(input);
    let output = python.output().map_err(|error| fail("run", Path::new("python3"), &error))?;
    fs::remove_file(&file).map_err(|error| fail("remove", &file, &error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{INDEX}: {}", String::from_utf8_lossy(&output.stderr))))
}

fn with_pip(simple: &Path, empty: &Path) -> Result {
    let mut venv = user("python3", empty);
    venv.args(["-m", "venv", "venv"]);
    run::quietly("python environment", venv)?;
    let python = empty.join("venv/bin/python");
    let mut pip = user(&python, empty);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--index-url"]);
    pip.arg(format!("file://{}", simple.display())).arg("leasehold");
    run::quietly("pip install leasehold", pip)?;
    let first = program(PYTHON_PAGE, "python", &empty.join("first.py"))?;
    let mut lock = user(&python, empty);
    lock.arg(first);
    says(lock, "the lock is mine, with token")?;
    let mut command = user(empty.join("venv/bin/leasehold"), empty);
    command.args(EXEC);
    says(command, "held")
}

fn with_npm(url: &str, empty: &Path) -> Result {
    let mut npm = user("npm", empty);
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-update-notifier", "--registry", url, "--cache"])
        .arg(empty.join("cache"));
    npm.arg("leasehold");
    run::quietly("npm install leasehold", npm)?;
    let first = program(NODE_PAGE, "js", &empty.join("first.mjs"))?;
    let mut lock = user("node", empty);
    lock.arg(first);
    says(lock, "the lock is mine, with token")?;
    let mut command = user("npx", empty);
    command.args(["--no", "--", "leasehold"]).args(EXEC);
    says(command, "held")
}

fn with_cargo(steps: &mut Steps, registry: &Path, empty: &Path) -> Result {
    let home = made(&empty.join("home"))?;
    let config = format!(
        "[source.crates-io]\nreplace-with = \"index\"\n[source.index]\nlocal-registry = \"{}\"\n[net]\noffline = true\n",
        registry.display()
    );
    fs::write(home.join("config.toml"), config).map_err(|error| fail("write", &home, &error))?;
    let cargo = |args: &[&str], folder: &Path| {
        let mut cargo = user(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), folder);
        cargo.args(args).env("CARGO_HOME", &home).env("CARGO_TARGET_DIR", empty.join("target"));
        cargo
    };
    run::quietly("cargo new", cargo(&["new", "--quiet", "job"], empty))?;
    let job = empty.join("job");
    run::quietly("cargo add leasehold", cargo(&["add", "leasehold"], &job))?;
    let main = job.join("src/main.rs");
    fs::write(&main, read(RUST_PROGRAM)?).map_err(|error| fail("write", &main, &error))?;
    steps.run("cargo add leasehold", cargo(&["build", "--quiet"], &job))?;
    says(cargo(&["run", "--quiet"], &job), "the work ends")
}

/// A command of a user in a folder, without what this process and this machine's user have set.
fn user(program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if SETTINGS.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("PIP_CONFIG_FILE", "/dev/null").env("npm_config_userconfig", "/dev/null");
    command
}

/// The first block of code in a page that is a program.
fn program(page: &str, language: &str, file: &Path) -> Result<PathBuf> {
    let text = read(page)?;
    let block = text.split_once(&format!("```{language}\n")).and_then(|(_, rest)| rest.split_once("```"));
    let Some((block, _)) = block else { return Err(Failure::new(format!("{page} has no program"))) };
    fs::write(file, block).map_err(|error| fail("write", file, &error))?;
    Ok(file.to_owned())
}

fn says(command: Command, wanted: &str) -> Result {
    let shown = format!("{command:?}");
    let said = run::told("a user's program", command)?;
    if said.contains(wanted) {
        return Ok(());
    }
    Err(Failure::new(format!("{shown} does not say `{wanted}`, but:\n{said}")))
}

fn made(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| fail("make", folder, &error))?;
    Ok(folder.to_owned())
}

/// A server of files on this machine, until it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path) -> Result<Server> {
        let mut python = Command::new("python3");
        python.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(folder);
        let child = python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| fail("run", Path::new("python3"), &error))?;
        let mut line = String::new();
        // "Serving HTTP on 127.0.0.1 port 12345 (http://127.0.0.1:12345/) ..."
        let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let port = line.split_once(" port ").and_then(|(_, rest)| rest.split(' ').next());
        let url = port.map(|port| format!("http://127.0.0.1:{port}"));
        let mut server = Server { child, url: String::new() };
        server.url = url.ok_or_else(|| Failure::new(format!("the server of the index did not start: {read:?}")))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
