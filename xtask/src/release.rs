//! `cargo xtask release`: everything that is published, as far as this machine can build it, in `target/release-files`.
//!
//! What other platforms add is built by `.github/workflows/release.yml`. Nothing is published here or there.

use crate::run::{self, Failure, Result, Steps};
use crate::{component, node, python, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// In the order in which they could be published.
const CRATES: [&str; 4] = ["leasehold-core", "leasehold-wasmtime", "leasehold", "leasehold-cli"];
const NPM: &str = "node/package.json";
const SUMS: &str = "SHA256SUMS";

pub fn release(args: &[String]) -> Result {
    let mut steps = Steps::default();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => drop(build(&mut steps)?),
        ["--check"] => return check(),
        // What is the same for all platforms, for the workflow.
        ["portable"] => {
            setup::install_languages(&mut steps)?;
            let folder = empty_folder()?;
            portable(&mut steps, &folder)?;
        }
        _ => {
            let given = args.join(" ");
            return Err(Failure::new(format!("`{given}`: only `--check` or `portable` may follow `release`")));
        }
    }
    print!("\n{}", steps.table());
    Ok(())
}

/// Builds and installs everything; answers the folder.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    steps.timed("versions", check)?;
    setup::install(steps)?;
    let folder = empty_folder()?;
    let component = portable(steps, &folder)?;
    python::release(steps, &folder)?;
    let transpiled = component::transpile(steps, &component)?;
    node::release(steps, &folder, &transpiled)?;
    command(steps, &folder)?;
    steps.timed("checksums", || checksums(&folder))?;
    for file in listed(&folder)? {
        println!("{:>10}  {}", fs::metadata(&file).map_or(0, |data| data.len()), name(&file));
    }
    println!("in {}", folder.display());
    Ok(folder)
}

/// Crates, the components and the WIT of the one that imports nothing, and the source distribution for Python.
fn portable(steps: &mut Steps, folder: &Path) -> Result<PathBuf> {
    let mut package = run::cargo("package");
    package.args(["--quiet", "--allow-dirty"]);
    CRATES.iter().for_each(|name| _ = package.args(["-p", name]));
    steps.run("crates, compiled from what they contain", package)?;
    for name in CRATES {
        let file = format!("{name}-{VERSION}.crate");
        copy(&run::target()?.join("package").join(&file), &folder.join(file))?;
    }
    let component = component::build(steps)?;
    copy(&component, &folder.join(format!("leasehold-{VERSION}.wasm")))?;
    copy(&run::root().join("wit/leasehold.wit"), &folder.join(format!("leasehold-{VERSION}.wit")))?;
    copy(&component::build_locks(steps)?, &folder.join(format!("leasehold-locks-{VERSION}.wasm")))?;
    python::release_source(steps, folder)?;
    Ok(component)
}

/// The program alone, without symbols.
fn command(steps: &mut Steps, folder: &Path) -> Result {
    let mut build = run::cargo("build");
    build.args(["--release", "-p", "leasehold-cli"]);
    steps.run("command", build)?;
    let stripped = run::target()?.join("release-command");
    fs::create_dir_all(&stripped).map_err(|error| fail("make", &stripped, &error))?;
    let program = stripped.join("leasehold");
    let mut strip = Command::new("strip");
    strip.args(["-S", "-x", "-o"]).arg(&program).arg(run::target()?.join("release/leasehold"));
    run::quietly("command without its symbols", strip)?;
    let mut says = Command::new(&program);
    let said = says.arg("--version").output().map_err(|error| fail("run", &program, &error))?;
    if String::from_utf8_lossy(&said.stdout).trim() != format!("leasehold {VERSION}") {
        return Err(Failure::new(format!(
            "the command is not version {VERSION}: {}",
            String::from_utf8_lossy(&said.stdout)
        )));
    }
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(folder.join(format!(
        "leasehold-{VERSION}-{}-{}.tar.gz",
        std::env::consts::ARCH,
        std::env::consts::OS
    )));
    tar.arg("-C").arg(&stripped).arg("leasehold");
    run::quietly("archive of the command", tar)
}

/// Whether all that carries a version carries the same, and the vectors of this one are kept for the next.
fn check() -> Result {
    let path = run::root().join(NPM);
    let text = fs::read_to_string(&path).map_err(|error| fail("read", &path, &error))?;
    let wrong = versions(&text);
    if !wrong.is_empty() {
        return Err(Failure::new(format!("{NPM} does not say version {VERSION}: {}", wrong.join(", "))));
    }
    println!("every package is version {VERSION}");
    let kept = run::root().join("core/vectors/released").join(VERSION);
    if !kept.exists() {
        println!("its vectors are not kept yet: before it is tagged, run `cargo xtask vectors --release`");
    }
    Ok(())
}

/// The lines of `package.json` with a version of ours that is another one.
fn versions(text: &str) -> Vec<&str> {
    let ours = |line: &&str| line.starts_with("\"version\": ") || line.starts_with("\"@leasehold/");
    let lines: Vec<&str> = text.lines().map(|line| line.trim().trim_end_matches(',')).filter(ours).collect();
    if lines.len() < 2 {
        return vec!["no version of the package and of its platforms was found"];
    }
    lines.into_iter().filter(|line| !line.ends_with(&format!(": \"{VERSION}\""))).collect()
}

/// Of every file, as `sha256sum --check` reads them.
fn checksums(folder: &Path) -> Result {
    let mut sum = Command::new("sha256sum");
    sum.current_dir(folder).arg("--").args(listed(folder)?.iter().map(|path| name(path)));
    let output = sum.output().map_err(|error| fail("sum", folder, &error))?;
    if !output.status.success() {
        return Err(Failure::new(format!("sha256sum: {}", String::from_utf8_lossy(&output.stderr))));
    }
    fs::write(folder.join(SUMS), output.stdout).map_err(|error| fail("write", folder, &error))
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| fail("list", folder, &error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What lies there is from an earlier run.
fn empty_folder() -> Result<PathBuf> {
    let folder = run::target()?.join("release-files");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| fail("empty", &folder, &error))?;
    }
    fs::create_dir_all(&folder).map_err(|error| fail("make", &folder, &error))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(|_| ()).map_err(|error| fail("copy", from, &error))
}

fn fail(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_another_version_is_named() {
        let text = |platform: &str| {
            format!(
                "{{\n  \"version\": \"{VERSION}\",\n  \"engines\": \"20\",\n  \"@leasehold/linux-x64-gnu\": \"{platform}\"\n}}"
            )
        };
        assert!(versions(&text(VERSION)).is_empty());
        assert_eq!(versions(&text("0.0.9")), ["\"@leasehold/linux-x64-gnu\": \"0.0.9\""]);
        assert!(!versions("{}").is_empty(), "no version is no version of ours");
    }

    #[test]
    fn the_packages_of_today_agree() {
        check().expect("they agree");
    }
}
