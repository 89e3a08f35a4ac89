//! `cargo xtask release install`: an index of what was built, and its use from empty folders, as users install from the
//! public indexes: by the lines that the pages have, and then the first lock.
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
/// Pages that begin with lines that install, and a program that takes a lock.
const PYTHON_PAGE: &str = "docs/start-python.md";
const NODE_PAGE: &str = "docs/start-node.md";
const EDGE_PAGE: &str = "docs/start-edge.md";
const RUST_PAGE: &str = "docs/start-rust.md";
const COMMAND_PAGE: &str = "docs/start-command.md";
/// Has settings that lead Cargo to the index.
const INSTALLING_PAGE: &str = "docs/installing.md";
/// Stands for the folder of crates there.
const REGISTRY: &str = "/path/to/target/release-files/index/cargo";
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
    steps.timed("pip install leasehold-sdk", || with_pip(&index.join("pypi/simple"), &made(&empty.join("pip"))?))?;
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
    let mut pip = shell(&install_lines(PYTHON_PAGE)?, empty);
    pip.envs([("PIP_QUIET", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("PIP_NO_CACHE_DIR", "1")]);
    pip.env("PIP_INDEX_URL", format!("file://{}", simple.display()));
    run::quietly("pip install leasehold-sdk", pip)?;
    let first = program(PYTHON_PAGE, "python", &empty.join("first.py"))?;
    let mut lock = user(empty.join("venv/bin/python"), empty);
    lock.arg(first);
    says(lock, "the lock is mine, with token")?;
    let mut command = user(empty.join("venv/bin/leasehold"), empty);
    command.args(EXEC);
    says(command, "held")
}

fn with_npm(url: &str, empty: &Path) -> Result {
    let lines = install_lines(NODE_PAGE)?;
    if install_lines(EDGE_PAGE)? != lines {
        return Err(Failure::new(format!("{EDGE_PAGE} does not install by the lines of {NODE_PAGE}")));
    }
    let mut npm = shell(&lines, empty);
    npm.env("npm_config_registry", url).env("npm_config_cache", empty.join("cache"));
    npm.envs(["audit", "fund", "update_notifier"].map(|name| (format!("npm_config_{name}"), "false")));
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
    let config = block(INSTALLING_PAGE, "", "toml")?.replace(REGISTRY, &registry.display().to_string());
    fs::write(home.join("config.toml"), config + "[net]\noffline = true\n")
        .map_err(|error| fail("write", &home, &error))?;
    let set = |mut command: Command| {
        command.env("CARGO_HOME", &home).env("CARGO_TARGET_DIR", empty.join("target"));
        command
    };
    run::quietly("cargo add leasehold", set(shell(&install_lines(RUST_PAGE)?, empty)))?;
    let job = empty.join("job");
    let main = job.join("src/main.rs");
    fs::write(&main, block(RUST_PAGE, "", "rust")?).map_err(|error| fail("write", &main, &error))?;
    steps.run("cargo add leasehold", set(shell("cargo build --quiet", &job)))?;
    says(set(shell("cargo run --quiet", &job)), "the work ends")?;

    let mut install = set(shell(&install_lines(COMMAND_PAGE)?, empty));
    // It is compiled to be seen, and not to be fast.
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    steps.run("cargo install leasehold-cli", install)?;
    let mut command = user(home.join("bin/leasehold"), empty);
    command.args(EXEC);
    says(command, "held")
}

/// Lines of a shell, which ends at the first that fails.
fn shell(lines: &str, folder: &Path) -> Command {
    let mut shell = user("sh", folder);
    shell.args(["-ec", lines]);
    shell
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

/// The first program of a page, in a file.
fn program(page: &str, language: &str, file: &Path) -> Result<PathBuf> {
    fs::write(file, block(page, "", language)?).map_err(|error| fail("write", file, &error))?;
    Ok(file.to_owned())
}

/// The lines by which a page installs.
fn install_lines(page: &str) -> Result<String> {
    let shown = block(page, "\n## Install\n", "console")?;
    Ok(shown.lines().map(|line| line.trim_start_matches("$ ")).collect::<Vec<_>>().join("\n"))
}

/// The first block in a language that follows a heading of a page.
fn block(page: &str, heading: &str, language: &str) -> Result<String> {
    let text = read(page)?;
    let below = text.split_once(heading).map_or("", |(_, below)| below);
    let block = below.split_once(&format!("```{language}\n")).and_then(|(_, rest)| rest.split_once("```"));
    block.map(|(block, _)| block.to_owned()).ok_or_else(|| Failure::new(format!("{page} has no block in {language}")))
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
