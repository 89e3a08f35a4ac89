//! `cargo xtask release`: everything that is published, as far as this machine can build it, in `target/release-files`.
//!
//! Native code that is published is built by `.github/workflows/release.yml`, for every platform; what is built here, in
//! `this-machine`, shows that it can be, and installs from an index as users install it. Nothing is published here or there.

mod install;
mod native;
mod notices;

pub use native::Native;

use crate::node::LICENSES;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{component, go, node, python, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// In the order in which they could be published.
const CRATES: [&str; 6] =
    ["leasehold-core", "leasehold-wire", "leasehold-fence", "leasehold-wasmtime", "leasehold", "leasehold-cli"];
const NPM: &str = "node/package.json";
/// Workspaces of their own, of which nothing is published but what they make.
const COMPONENTS: [&str; 2] = ["bindings/component/Cargo.toml", "bindings/component/locks/Cargo.toml"];
/// Shipped with compiled code.
const NOTICES: &str = "THIRD-PARTY.txt";
/// Has our version in it, and components are built with what it says.
const COMPONENTS_LOCK: &str = "bindings/component/Cargo.lock";
const SUMS: &str = "SHA256SUMS";
/// For this machine's platform.
const HERE: &str = "this-machine";
/// Stands in documents until the first release.
const UNRELEASED: [&str; 4] =
    ["README.md", "docs/installing.md", "docs/reliability.md", "core/vectors/released/README.md"];
/// Checks workflows, and their shell parts where shellcheck is installed.
const LINTER: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.9";
const WORKFLOWS: [&str; 3] = ["ci.yml", "dependencies.yml", "release.yml"];
/// Has the project's addresses, which nobody has chosen while they end so.
const ADDRESSES: &str = "Cargo.toml";
const UNCHOSEN: &str = ".invalid/";

pub fn release(args: &[String]) -> Result {
    let mut steps = Steps::default();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => drop(build(&mut steps)?),
        ["--check"] => return check(),
        ["--check", tag] => return check().and_then(|()| ready_for(tag)),
        // What an earlier run has built.
        ["install"] => install::install(&mut steps, &files_folder()?)?,
        ["index", url] => return install::write(&files_folder()?, url),
        ["notices"] => return write_notices().map(|path| println!("{} was written", path.display())),
        // What is the same for all platforms, for the workflow.
        ["portable"] => {
            setup::install_compilers(&mut steps)?;
            let folder = empty_folder()?;
            portable(&mut steps, &folder, &[])?;
        }
        _ => {
            let given = args.join(" ");
            return Err(Failure::new(format!(
                "`{given}`: only `--check`, `--check TAG`, `index URL`, `install`, `notices` or `portable` may follow `release`"
            )));
        }
    }
    print!("\n{}", steps.table());
    Ok(())
}

/// Builds and installs everything; answers the folder.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    steps.timed("versions", check)?;
    setup::install_compilers(steps)?;
    let folder = empty_folder()?;
    // This is tried before it is committed.
    let component = portable(steps, &folder, &["--allow-dirty"])?;
    let here = folder.join(HERE);
    fs::create_dir(&here).map_err(|error| fail("make", &here, &error))?;
    let notices = write_notices()?;
    let native = Native::install(steps)?;
    python::release(steps, &native, &here, &notices)?;
    let transpiled = component::transpile(steps, &component)?;
    node::release(steps, &native, &here, &transpiled, &notices)?;
    command(steps, &native, &here, &notices)?;
    install::install(steps, &folder)?;
    go::release(steps, &folder, VERSION)?;
    for folder in [&here, &folder] {
        steps.timed("checksums", || checksums(folder))?;
    }
    for file in files(&folder)?.into_iter().chain(files(&here)?) {
        let shown = file.strip_prefix(&folder).unwrap_or(&file).display();
        println!("{:>10}  {shown}", fs::metadata(&file).map_or(0, |data| data.len()));
    }
    println!("in {}", folder.display());
    Ok(folder)
}

/// Crates, the components and the WIT of the one that imports nothing, and the source distribution for Python.
fn portable(steps: &mut Steps, folder: &Path, dirty: &[&str]) -> Result<PathBuf> {
    let mut package = run::cargo("package");
    package.arg("--quiet").args(dirty);
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
    // For the components, which have no archive to put it in.
    copy(&write_notices()?, &folder.join(NOTICES))?;
    let source = python::source(steps)?;
    copy(&source, &folder.join(name(&source)))?;
    Ok(component)
}

/// The program alone.
fn command(steps: &mut Steps, native: &Native, folder: &Path, notices: &Path) -> Result {
    steps.run("command", native.build("leasehold-cli")?)?;
    let packed = run::target()?.join("release-command");
    fs::create_dir_all(&packed).map_err(|error| fail("make", &packed, &error))?;
    let program = packed.join("leasehold");
    copy(&native.built()?.join("leasehold"), &program)?;
    native.check(&program)?;
    let mut says = Command::new(&program);
    let said = says.arg("--version").output().map_err(|error| fail("run", &program, &error))?;
    if String::from_utf8_lossy(&said.stdout).trim() != format!("leasehold {VERSION}") {
        return Err(Failure::new(format!(
            "the command is not version {VERSION}: {}",
            String::from_utf8_lossy(&said.stdout)
        )));
    }
    for text in LICENSES {
        copy(&run::root().join(text), &packed.join(text))?;
    }
    copy(notices, &packed.join(NOTICES))?;
    let mut tar = Command::new("tar");
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    tar.arg("-czf").arg(folder.join(format!("leasehold-cli-{VERSION}-{platform}.tar.gz")));
    tar.arg("-C").arg(&packed).arg("leasehold").args(LICENSES).arg(NOTICES);
    run::quietly("archive of the command", tar)
}

/// Checks that everything carries the same version, and that the vectors of this one are kept for the next.
fn check() -> Result {
    let wrong = versions(&read(NPM)?).join(", ");
    if !wrong.is_empty() {
        return Err(Failure::new(format!("{NPM} does not say version {VERSION}: {wrong}")));
    }
    for manifest in COMPONENTS {
        if !read(manifest)?.contains(&format!("\nversion = \"{VERSION}\"\n")) {
            return Err(Failure::new(format!("{manifest} does not say version {VERSION}")));
        }
    }
    if !read(COMPONENTS_LOCK)?.contains(&format!("name = \"leasehold-core\"\nversion = \"{VERSION}\"\n")) {
        return Err(Failure::new(format!(
            "{COMPONENTS_LOCK} does not say version {VERSION}: run `cargo update --workspace` there"
        )));
    }
    println!("every package is version {VERSION}");
    lint_workflows()?;
    if !kept_vectors().exists() {
        println!("its vectors are not kept yet: before it is tagged, run `cargo xtask vectors --release`");
    }
    Ok(())
}

/// A workflow that cannot be parsed never runs, and nobody is told.
fn lint_workflows() -> Result {
    if Command::new("go").arg("version").output().is_err() {
        println!("the workflows are not checked: that needs Go");
        return Ok(());
    }
    let mut lint = Command::new("go");
    lint.args(["run", LINTER]).args(WORKFLOWS.map(|name| run::root().join(".github/workflows").join(name)));
    run::quietly("check of the workflows", lint)
}

/// Checks that this state may be tagged.
fn ready_for(tag: &str) -> Result {
    if tag != format!("v{VERSION}") {
        return Err(Failure::new(format!("the tag is {tag}, and the version {VERSION}")));
    }
    if !kept_vectors().exists() {
        return Err(Failure::new("its vectors are not kept: run `cargo xtask vectors --release`, and commit them"));
    }
    if let Some(line) = unchosen(&read(ADDRESSES)?) {
        return Err(Failure::new(format!("{ADDRESSES} has no address of the project yet: {line}")));
    }
    if !is_dated(&read("CHANGELOG.md")?) {
        return Err(Failure::new(format!("CHANGELOG.md has no heading `## [{VERSION}] - ` with a date")));
    }
    for path in UNRELEASED {
        // Also across the end of a line.
        if read(path)?.split_whitespace().collect::<Vec<_>>().join(" ").contains("Nothing has been released yet") {
            return Err(Failure::new(format!("{path} says that nothing has been released yet")));
        }
    }
    Ok(())
}

/// The licences of others, for this platform, in the target folder.
fn write_notices() -> Result<PathBuf> {
    let path = run::target()?.join(NOTICES);
    fs::write(&path, notices::notices()?).map_err(|error| fail("write", &path, &error))?;
    Ok(path)
}

fn kept_vectors() -> PathBuf {
    run::root().join("core/vectors/released").join(VERSION)
}

/// Checks that the changelog says when this version was released.
fn is_dated(changelog: &str) -> bool {
    let heading = format!("## [{VERSION}] - ");
    changelog.lines().filter_map(|line| line.strip_prefix(&heading)).any(|date| {
        date.len() == 10
            && date.char_indices().all(|(at, c)| if at == 4 || at == 7 { c == '-' } else { c.is_ascii_digit() })
    })
}

fn read(path: &str) -> Result<String> {
    let path = run::root().join(path);
    fs::read_to_string(&path).map_err(|error| fail("read", &path, &error))
}

/// The line with an address that stands for one that is to be chosen.
fn unchosen(manifest: &str) -> Option<&str> {
    manifest.lines().find(|line| !line.starts_with('#') && line.contains(UNCHOSEN))
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
    sum.current_dir(folder).arg("--").args(files(folder)?.iter().map(|path| name(path)));
    let output = sum.output().map_err(|error| fail("sum", folder, &error))?;
    if !output.status.success() {
        return Err(Failure::new(format!("sha256sum: {}", String::from_utf8_lossy(&output.stderr))));
    }
    fs::write(folder.join(SUMS), output.stdout).map_err(|error| fail("write", folder, &error))
}

/// Without folders.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| fail("list", folder, &error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn files_folder() -> Result<PathBuf> {
    Ok(run::target()?.join("release-files"))
}

/// Removes what an earlier run has left.
fn empty_folder() -> Result<PathBuf> {
    let folder = files_folder()?;
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
    fn a_version_without_a_date_is_not_released() {
        for (date, dated) in [("2026-12-24", true), ("unreleased", false), ("2026-12-2", false), ("2026/12/24", false)]
        {
            assert_eq!(is_dated(&format!("# Changelog\n\n## [{VERSION}] - {date}\n")), dated, "{date}");
        }
        assert!(!is_dated("## [0.0.1] - 2026-12-24\n"));
    }

    #[test]
    fn an_address_that_nobody_has_chosen_is_named() {
        let line = "homepage = \"https://docs.invalid/leasehold/\"";
        assert_eq!(unchosen(&format!("[workspace.package]\n{line}\n")), Some(line));
        assert_eq!(unchosen("# not https://docs.invalid/\nhomepage = \"https://example.com/\"\n"), None);
    }

    #[test]
    fn a_tag_of_another_version_is_refused() {
        assert!(ready_for("v0.0.0").expect_err("it is another one").to_string().contains("the tag is v0.0.0"));
    }

    #[test]
    fn the_packages_of_today_agree() {
        check().expect("they agree");
    }
}
