//! A copy of what is to be broken, with a target folder of its own, so that the working tree is never touched.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::patch::Patch;
use crate::run::{self, Failure, Result};

/// The part of the workspace that the packages below need.
const COPIED: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "wit",
    "core",
    "testing/sim",
    "testing/servers",
    "testing/concurrency",
    "client/Cargo.toml",
    "client/src",
    "client/fence/src",
];
const MEMBERS: &str = "members = [\"core\", \"core/wire\", \"testing/sim\", \"testing/concurrency\", \"testing/concurrency/fence\", \"testing/concurrency/scheduler\"]";
/// The profile that these tests are run with, and no more: the settings of the workspace name packages that are not copied.
const NEXTEST: (&str, &[u8]) = (".config/nextest.toml", b"[profile.computing]\n");

/// Changes to the profile, so that one line is compiled in seconds.
const QUICKLY: [(&str, &str); 2] = [("CARGO_PROFILE_CI_INCREMENTAL", "true"), ("CARGO_PROFILE_CI_DEBUG", "0")];

/// Seconds of a processor after which a run counts as one that never ends: on a machine that is busy with other things, time
/// would pass for a catch.
const PROCESSOR: u32 = 600;
/// The same for one that waits forever. Nothing here does so but by mistake.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub struct Tree {
    root: PathBuf,
    target: PathBuf,
    log: PathBuf,
}

const SIGXCPU: i32 = 24;

/// How a program ended.
pub enum Ended {
    Well,
    Badly(ExitStatus),
    /// It was stopped after a long while.
    Never,
}

impl Tree {
    /// A fresh copy. Files that are as they were keep their times, so that cargo compiles only what has changed.
    pub fn copy(folder: &Path) -> Result<Self> {
        let tree = Self { root: folder.join("tree"), target: folder.join("target"), log: folder.join("log.txt") };
        let mut kept = BTreeSet::new();
        for name in COPIED {
            tree.copy_entry(&run::root().join(name), &tree.root.join(name), &mut kept)?;
        }
        let settings = tree.root.join(NEXTEST.0);
        write(&settings, NEXTEST.1)?;
        kept.insert(settings);
        tree.drop_others(&tree.root, &kept)?;
        let mut prune = run::plain_cargo("update");
        prune.args(["--workspace", "--offline"]);
        match tree.run(prune)? {
            (Ended::Well, _) => Ok(tree),
            (Ended::Badly(_) | Ended::Never, said) => {
                Err(Failure::new(format!("the copy in {} makes no workspace\n{said}", tree.root.display())))
            }
        }
    }

    fn copy_entry(&self, from: &Path, to: &Path, kept: &mut BTreeSet<PathBuf>) -> Result {
        if from.is_dir() {
            for entry in fs::read_dir(from).map_err(|error| cannot("read", from, &error))? {
                let name = entry.map_err(|error| cannot("read", from, &error))?.file_name();
                self.copy_entry(&from.join(&name), &to.join(&name), kept)?;
            }
            return Ok(());
        }
        let mut bytes = fs::read(from).map_err(|error| cannot("read", from, &error))?;
        if to == self.root.join("Cargo.toml") {
            bytes = fewer_members(&String::from_utf8_lossy(&bytes))?.into_bytes();
        }
        kept.insert(to.to_owned());
        if fs::read(to).is_ok_and(|before| before == bytes) { Ok(()) } else { write(to, &bytes) }
    }

    fn drop_others(&self, folder: &Path, kept: &BTreeSet<PathBuf>) -> Result {
        for entry in fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))? {
            let path = entry.map_err(|error| cannot("read", folder, &error))?.path();
            if path.is_dir() {
                self.drop_others(&path, kept)?;
            } else if !kept.contains(&path) {
                fs::remove_file(&path).map_err(|error| cannot("remove", &path, &error))?;
            }
        }
        Ok(())
    }

    /// Does something while the bug is there.
    pub fn with<T>(&self, patch: &Patch, act: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let path = self.root.join(&patch.file);
        let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
        write(&path, patch.apply(&text)?.as_bytes())?;
        let result = act(self);
        write(&path, text.as_bytes())?;
        result
    }

    /// Where programs are.
    pub fn built(&self) -> PathBuf {
        self.target.join("ci")
    }

    /// Compiles a package. That a bug does not compile is no catch.
    pub fn compiles(&self, package: &str, targets: &[&str]) -> Result {
        let build = || {
            let mut build = run::cargo_ci("build");
            build.args(["-p", package]).args(targets);
            self.run(build)
        };
        if matches!(build()?, (Ended::Well, _)) {
            return Ok(());
        }
        // A run that was killed may have left half of what the next one builds upon.
        let mut clean = run::cargo_ci("clean");
        clean.args([
            "-p",
            "leasehold-core",
            "-p",
            "leasehold-wire",
            "-p",
            "leasehold-sim",
            "-p",
            "leasehold-concurrency",
        ]);
        self.run(clean)?;
        match build()? {
            (Ended::Well, _) => Ok(()),
            (Ended::Badly(_) | Ended::Never, said) => {
                let from = said.find("error").unwrap_or(0);
                let lines: Vec<_> = said[from..].lines().take(20).collect();
                Err(Failure::new(format!("{package} does not compile with it\n{}", lines.join("\n"))))
            }
        }
    }

    /// Runs a command in the copy, and returns all that it said.
    pub fn run(&self, command: Command) -> Result<(Ended, String)> {
        let program = command.get_program().to_owned();
        let mut command = limited(&command);
        let log = fs::File::create(&self.log).map_err(|error| cannot("write", &self.log, &error))?;
        let errors = log.try_clone().map_err(|error| cannot("write", &self.log, &error))?;
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target).env("CARGO_TERM_COLOR", "never");
        // A bug runs for seconds, and its compiler is to take no longer.
        command.envs(QUICKLY);
        // Cargo takes it for the folder of the workspace.
        command.env_remove("CARGO_MANIFEST_DIR");
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let cannot_run = |error: std::io::Error| {
            Failure::new(format!("cannot run {} with prlimit (util-linux): {error}", program.to_string_lossy()))
        };
        let mut child = command.spawn().map_err(cannot_run)?;
        let until = Instant::now() + PATIENCE;
        let ended = loop {
            match child.try_wait().map_err(cannot_run)? {
                Some(status) if status.success() => break Ended::Well,
                Some(status) if status.signal() == Some(SIGXCPU) => break Ended::Never,
                Some(status) => break Ended::Badly(status),
                None if Instant::now() >= until => {
                    child.kill().and_then(|()| child.wait()).map_err(cannot_run)?;
                    break Ended::Never;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let said = fs::read(&self.log).map_err(|error| cannot("read", &self.log, &error))?;
        Ok((ended, String::from_utf8_lossy(&said).into_owned()))
    }
}

/// The same command, which a signal ends when it has computed for too long: on Linux, where a program can do that.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("prlimit");
    if cfg!(target_os = "linux") {
        limited.arg(format!("--cpu={PROCESSOR}")).arg("--").arg(command.get_program());
    } else {
        limited = Command::new(command.get_program());
    }
    limited.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// The workspace's manifest, with only those members that are copied.
fn fewer_members(manifest: &str) -> Result<String> {
    let mut found = false;
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members = ")).map(|line| {
        let is_it = line.starts_with("members = ");
        found |= is_it;
        if is_it { MEMBERS } else { line }
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    if found { Ok(text) } else { Err(Failure::new("Cargo.toml has no line `members = ` to shorten")) }
}

fn write(path: &Path, bytes: &[u8]) -> Result {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_command_is_the_same_command() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t; echo $SAID"]).env("SAID", "well");
        let said = limited(&command).output().expect("there is a shell").stdout;
        assert_eq!(String::from_utf8_lossy(&said), format!("{PROCESSOR}\nwell\n"));
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn what_sources_include_is_copied_too() {
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        let folders = COPIED.iter().map(|name| run::root().join(name)).filter(|path| path.is_dir());
        folders.for_each(|folder| sources(&folder, &mut files));
        for file in files {
            let text = fs::read_to_string(&file).expect("it is UTF-8");
            for (_, rest) in text.match_indices("include_str!(\"").map(|(at, found)| text.split_at(at + found.len())) {
                let included = rest.split('"').next().unwrap_or_default();
                let path = file.parent().expect("it lies in a folder").join(included).canonicalize();
                let path = path.unwrap_or_else(|error| panic!("{included} in {}: {error}", file.display()));
                // Pages are included where docs are tested, which is not done here.
                let is_there = |name: &&str| path.starts_with(run::root().join(name));
                if !COPIED.iter().any(is_there) && !is_there(&"docs") {
                    missing.push(format!("{included} in {}", file.display()));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_copy_has_fewer_members() {
        let manifest = "[workspace]\nmembers = [\"core\", \"xtask\"]\ndefault-members = [\"core\"]\n\n[profile.ci]\n";
        let fewer = fewer_members(manifest).expect("it has a list of members");
        assert_eq!(fewer, format!("[workspace]\n{MEMBERS}\n\n[profile.ci]\n"));
        assert!(fewer_members("[workspace]\n").is_err());
    }
}
