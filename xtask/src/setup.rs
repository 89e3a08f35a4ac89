//! The programs that a machine needs before anything can be built and tested.

use crate::component;
use crate::interop::Environment;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::windows;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DEBIAN_PACKAGES: [&str; 2] = ["gcc", "libc6-dev"];
/// Compiles libFuzzer.
const CXX_PACKAGE: &str = "g++";
/// Servers and other programs that tests start for themselves, and the Debian packages that have them.
const SERVERS: [(&str, &str); 8] = [
    ("redis-server", "redis-server"),
    ("webdis", "webdis"),
    ("postgres", "postgresql"),
    ("pgbouncer", "pgbouncer"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    // DynamoDB Local comes with the lock libraries; this runs it, and compiles a client of the daemon.
    ("javac", "default-jdk-headless"),
    // A client of the daemon.
    ("curl", "curl"),
];
/// Run the lock libraries of other languages, with the Debian packages that have them.
const LANGUAGES: [(&str, &str); 2] = [("node", "nodejs"), ("npm", "npm")];
/// Browsers for the component: the first of these programs that is there.
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    // macOS keeps it off the path.
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
/// Counts instructions: the program, and the package that has it.
const VALGRIND: &str = "valgrind";
const BROWSER_PACKAGE: &str = "chromium-headless-shell";
/// Compile the component where rustup cannot fetch what is missing.
pub const WASM_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
/// Subcommands of Cargo that tests and checks want.
const PROGRAMS: [&str; 2] = ["nextest", "deny"];
const PYTHON_PACKAGE: &str = "python3-venv";
/// Debian packages of compilers, which macOS has in Xcode's command line tools.
const XCODE: [&str; 3] = ["gcc", "libc6-dev", CXX_PACKAGE];
/// Debian packages, and those of Homebrew that have the same programs.
const HOMEBREW: [(&str, &str); 11] = [
    ("redis-server", "redis"),
    ("webdis", "webdis"),
    ("postgresql", "postgresql@17"),
    ("pgbouncer", "pgbouncer"),
    ("etcd-server", "etcd"),
    ("etcd-client", "etcd"),
    ("default-jdk-headless", "temurin"),
    ("nodejs", "node"),
    ("npm", "node"),
    (PYTHON_PACKAGE, "python"),
    (BROWSER_PACKAGE, "google-chrome"),
];

/// Fails, with what to install, where SQLite's C sources cannot be compiled.
pub fn c_compiler() -> Result {
    if compiles_c() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "no working C compiler `{}`; SQLite is compiled from source and needs one\n  install: {}",
        compiler(),
        advice(&DEBIAN_PACKAGES)
    )))
}

/// Installs what compiles and lints, where that can be done without asking; says what is missing elsewhere.
pub fn install_to_build(steps: &mut Steps) -> Result {
    if !compiles_c() {
        install_packages(steps, &DEBIAN_PACKAGES)?;
    }
    c_compiler()?;
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        component_of_rustup(steps, subcommand, component)?;
    }
    Ok(())
}

/// Installs what tests need beyond that.
pub fn install_to_test(steps: &mut Steps) -> Result {
    target_of_rustup(steps)?;
    let single = missing_browser().into_iter().chain(missing_valgrind()).collect();
    let missing = [missing_servers(), missing_languages(), missing_wasm(), single];
    install_packages(steps, &missing.concat())?;
    servers()?;
    languages()?;
    valgrind()?;
    install_programs(steps)?;
    browser().map(drop)
}

/// Installs subcommands of Cargo as other people have compiled them: Cargo would take minutes for each. Fails, with what to
/// install, where there is none for this platform.
fn install_programs(steps: &mut Steps) -> Result {
    if PROGRAMS.iter().all(|name| has_subcommand(name)) {
        return Ok(());
    }
    let folder = run::target()?.join("programs");
    let programs = Environment {
        folder: folder.clone(),
        requirements: vec![run::root().join("xtask/programs.txt")],
        imports: "sys",
    };
    let names = PROGRAMS.map(|name| format!("cargo-{name}")).join(" and ");
    steps.timed(&format!("install {names}"), || match programs.install() {
        Ok(_) => Ok(()),
        Err(failure) => {
            let typed = PROGRAMS.map(|name| format!("cargo install --locked cargo-{name}")).join("\n  install: ");
            Err(Failure::new(format!("{names} are missing\n  install: {typed}\n{failure}")))
        }
    })?;
    run::find_programs_in(folder.join("bin"));
    Ok(())
}

/// Installs all that `cargo xtask test` needs.
pub fn install(steps: &mut Steps) -> Result {
    install_to_build(steps)?;
    install_to_test(steps)
}

/// Installs what compiles libFuzzer, as [`install`] does.
pub fn install_cxx(steps: &mut Steps) -> Result {
    install_packages(steps, &missing_cxx().into_iter().collect::<Vec<_>>())?;
    cxx_compiler()
}

/// Fails, with what to install, where libFuzzer could not be compiled.
fn cxx_compiler() -> Result {
    match missing_cxx() {
        None => Ok(()),
        Some(package) => Err(Failure::new(format!(
            "no working C++ compiler `c++`; libFuzzer is compiled from source and needs one\n  install: {}",
            advice(&[package])
        ))),
    }
}

fn missing_cxx() -> Option<&'static str> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).args(["-x", "c++", "-fsyntax-only", "-"]);
    if cfg!(windows) || includes(command, b"#include <algorithm>\n") { None } else { Some(CXX_PACKAGE) }
}

/// Installs what runs the lock libraries of other languages, as [`install`] does.
pub fn install_languages(steps: &mut Steps) -> Result {
    install_packages(steps, &missing_languages())?;
    languages()
}

/// Installs what builds everything, as [`install`] does, and nothing that only tests want.
pub fn install_compilers(steps: &mut Steps) -> Result {
    install_packages(steps, &[missing_languages(), missing_wasm()].concat())?;
    c_compiler()?;
    languages()
}

/// Installs what runs real servers and workers of other languages, as [`install`] does.
pub fn install_servers(steps: &mut Steps) -> Result {
    install_packages(steps, &[missing_servers(), missing_languages()].concat())?;
    c_compiler()?;
    servers()?;
    languages()
}

/// Installs what compiles the component, as [`install`] does. Elsewhere the build says what is missing.
pub fn install_wasm(steps: &mut Steps) -> Result {
    install_packages(steps, &missing_wasm())
}

/// Installs what compiles for Windows and runs that, as [`install`] does.
pub fn install_windows(steps: &mut Steps) -> Result {
    let missing = windows::missing();
    install_packages(steps, &[missing, missing_wasm()].concat())?;
    match windows::missing() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(Failure::new(format!(
            "programs for Windows can be compiled and run with MinGW and Wine\n  install: {}",
            advice(&missing)
        ))),
    }
}

/// Installs what counts instructions, as [`install`] does.
pub fn install_valgrind(steps: &mut Steps) -> Result {
    install_packages(steps, &missing_valgrind().into_iter().collect::<Vec<_>>())?;
    valgrind()
}

/// Fails, with what to install, where instructions could be counted and are not.
fn valgrind() -> Result {
    match missing_valgrind() {
        None => Ok(()),
        Some(package) => Err(Failure::new(format!("Valgrind counts instructions\n  install: {}", advice(&[package])))),
    }
}

/// Instructions are counted on Linux alone.
fn missing_valgrind() -> Option<&'static str> {
    (cfg!(target_os = "linux") && on_path(VALGRIND).is_none()).then_some(VALGRIND)
}

/// Installs what runs the component as a browser does, as [`install`] does.
pub fn install_browser(steps: &mut Steps) -> Result {
    install_packages(steps, &missing_browser().into_iter().collect::<Vec<_>>())?;
    browser().map(drop)
}

/// The browser that is there, or what to install.
pub fn browser() -> Result<PathBuf> {
    let found = BROWSERS.iter().find_map(|program| on_path(program));
    found.ok_or_else(|| {
        Failure::new(format!(
            "no browser is on the path to test with; any of {} would do\n  install: {}",
            BROWSERS.join(", "),
            advice(&[BROWSER_PACKAGE])
        ))
    })
}

fn missing_browser() -> Option<&'static str> {
    if browser().is_ok() { None } else { Some(BROWSER_PACKAGE) }
}

fn missing_wasm() -> Vec<&'static str> {
    if component::has_toolchain() { Vec::new() } else { WASM_PACKAGES.to_vec() }
}

/// How to install here what these Debian packages contain.
fn advice(missing: &[&str]) -> String {
    if is_debian() {
        format!("sudo apt-get install {}", missing.join(" "))
    } else if cfg!(target_os = "macos") {
        on_macos(missing)
    } else {
        format!("what Debian's packages contain, with programs on the path: {}", missing.join(" "))
    }
}

fn on_macos(missing: &[&str]) -> String {
    let mut commands = Vec::new();
    if missing.iter().any(|package| XCODE.contains(package)) {
        commands.push("xcode-select --install".to_owned());
    }
    let mut brewed: Vec<_> =
        HOMEBREW.iter().filter(|(debian, _)| missing.contains(debian)).map(|(_, name)| *name).collect();
    brewed.dedup();
    if !brewed.is_empty() {
        commands.push(format!("brew install {}", brewed.join(" ")));
    }
    // Homebrew leaves programs of a package with a version off the path.
    commands.extend(brewed.iter().filter(|name| name.contains('@')).map(|name| format!("brew link --force {name}")));
    commands.join(" && ")
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists()
}

/// Where that can be done without asking.
fn install_packages(steps: &mut Steps, missing: &[&str]) -> Result {
    if !missing.is_empty() && is_root() && is_debian() {
        let mut update = Command::new("apt-get");
        update.args(["update", "-qq"]);
        steps.run("apt-get update", update)?;
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing);
        install.env("DEBIAN_FRONTEND", "noninteractive");
        steps.run(&format!("install {}", missing.join(" ")), install)?;
    }
    Ok(())
}

/// Fails, with what to install, where a server that tests start is missing.
fn servers() -> Result {
    let missing = missing_servers();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "programs that tests start as servers of their own are missing\n  install: {}",
        advice(&missing)
    )))
}

/// Packages of the servers that are not there. Debian keeps PostgreSQL's programs off the path, and PgBouncer off that of
/// users other than root.
fn missing_servers() -> Vec<&'static str> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut missing =
        missing_programs(&SERVERS, versions.map(|version| version.path().join("bin")).chain(["/usr/sbin".into()]));
    // The `java` that comes with macOS only says that there is none.
    let mut java = Command::new("java");
    java.arg("-version");
    if cfg!(target_os = "macos") && !run::succeeds(java) {
        missing.push("default-jdk-headless");
    }
    missing
}

/// Fails, with what to install, where lock libraries of other languages could not run.
fn languages() -> Result {
    let missing = missing_languages();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "programs that run the lock libraries of other languages are missing\n  install: {}",
        advice(&missing)
    )))
}

fn missing_languages() -> Vec<&'static str> {
    let mut missing = missing_programs(&LANGUAGES, []);
    // Debian's interpreter comes without the second one.
    let mut python = Command::new("python3");
    python.args(["-c", "import venv, ensurepip"]);
    if !run::succeeds(python) {
        missing.push(PYTHON_PACKAGE);
    }
    missing
}

/// Packages of the programs that are neither on the path nor in one of the other folders.
fn missing_programs(
    programs: &[(&str, &'static str)],
    elsewhere: impl IntoIterator<Item = PathBuf>,
) -> Vec<&'static str> {
    let elsewhere: Vec<_> = elsewhere.into_iter().collect();
    let is_there =
        |program: &str| on_path(program).is_some() || elsewhere.iter().any(|folder| folder.join(program).is_file());
    programs.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}

/// A program that is not named by its whole path is looked up.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Installs `cargo-NAME`, where it is missing. Takes minutes, once.
pub fn subcommand(steps: &mut Steps, name: &str) -> Result {
    if has_subcommand(name) {
        return Ok(());
    }
    let mut install = run::plain_cargo("install");
    install.args(["--locked", "--quiet", &format!("cargo-{name}")]);
    steps.run(&format!("install cargo-{name}"), install)
}

/// Tells if Cargo has this subcommand.
pub fn has_subcommand(name: &str) -> bool {
    let mut version = run::plain_cargo(name);
    version.arg("--version");
    run::succeeds(version)
}

/// Adds the library for WebAssembly, where rustup can; Debian's packages bring one elsewhere, which takes minutes to compile.
fn target_of_rustup(steps: &mut Steps) -> Result {
    if component::has_library() || on_path("rustup").is_none() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", component::TARGET]).current_dir(run::root());
    steps.timed(&format!("rustup target add {}", component::TARGET), || {
        if let Err(failure) = run::quietly("rustup", rustup) {
            println!("{failure}");
        }
        Ok(())
    })
}

fn component_of_rustup(steps: &mut Steps, subcommand: &str, component: &str) -> Result {
    if has_subcommand(subcommand) {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.arg("--version");
    if !run::succeeds(rustup) {
        return Err(Failure::new(format!("`cargo {subcommand}` is missing\n  install: your toolchain's {component}")));
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", component]);
    steps.run(&format!("install {component}"), add)
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

/// The C compiler, with the arguments that `CC` gives it.
pub fn compile() -> Command {
    let compiler = compiler();
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// Compiles a file that includes a header: a linker called `cc` is always there (rustc needs it too), the headers of
/// the C library may not be.
fn compiles_c() -> bool {
    if cfg!(windows) {
        // The Visual Studio compiler is no command on the path; the build script that looks for it says what it misses.
        return true;
    }
    let mut command = compile();
    command.args(["-x", "c", "-fsyntax-only", "-"]);
    includes(command, b"#include <stdlib.h>\n")
}

/// Tells if a compiler takes this line.
fn includes(mut command: Command, line: &[u8]) -> bool {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return false };
    let written = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(line).is_ok());
    child.wait().is_ok_and(|status| written && status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macos_gets_the_names_of_homebrew() {
        let everything = [
            &DEBIAN_PACKAGES[..],
            &[CXX_PACKAGE, PYTHON_PACKAGE, BROWSER_PACKAGE],
            &SERVERS.map(|(_, package)| package),
            &LANGUAGES.map(|(_, package)| package),
        ];
        assert_eq!(
            on_macos(&everything.concat()),
            "xcode-select --install && brew install redis webdis postgresql@17 pgbouncer etcd temurin node python \
             google-chrome && brew link --force postgresql@17"
        );
        assert_eq!(on_macos(&["g++"]), "xcode-select --install");
        assert_eq!(on_macos(&["nodejs", "npm"]), "brew install node");
    }

    /// The runners bring the rest: curl, and on macOS Java.
    #[test]
    fn workflows_install_the_servers_that_tests_start() {
        let ci = include_str!("../../.github/workflows/ci.yml");
        let release = include_str!("../../.github/workflows/release.yml");
        let installed = |command: &str| -> Vec<_> {
            ci.lines().chain(release.lines()).filter(|line| line.contains(command)).collect()
        };
        let (debian, homebrew) = (installed("apt-get install"), installed("brew install"));
        assert_eq!((debian.len(), homebrew.len()), (3, 1));
        for (_, package) in SERVERS.iter().filter(|(program, _)| *program != "curl") {
            assert!(debian.iter().all(|line| line.split(' ').any(|word| word == *package)), "{package}: {debian:?}");
            let brewed = HOMEBREW.iter().find(|(name, _)| name == package).map(|(_, brewed)| *brewed).unwrap();
            let has_it = brewed == "temurin" || homebrew.iter().all(|line| line.split(' ').any(|word| word == brewed));
            assert!(has_it, "{brewed}: {homebrew:?}");
        }
    }
}
