//! Real processes on a real database file, and waiting for conditions.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "these are tests, which clippy sees only in functions that are marked so")]

#[cfg(feature = "serve")]
pub(crate) mod daemon;
pub(crate) mod pty;

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Long enough for a machine that is busy with other things; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a store of its own.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> String {
        format!("sqlite:{}", self.path("locks.db").display())
    }

    /// The program with this place's store, working in this place.
    pub(crate) fn leasehold(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("LEASEHOLD_STORE", self.store());
        for folder in ["XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env(folder, self.folder.path());
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.leasehold(arguments).output().unwrap())
    }

    /// Installs the program, and reports of two names, in a folder for `PATH`.
    pub(crate) fn install(&self) -> PathBuf {
        let bin = self.path("bin");
        if !bin.exists() {
            fs::create_dir(&bin).unwrap();
            symlink(env!("CARGO_BIN_EXE_leasehold"), bin.join("leasehold")).unwrap();
            for report in [self.path("report.sh"), bin.join("report")] {
                fs::write(&report, "#!/bin/sh\necho report written\n").unwrap();
                fs::set_permissions(&report, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        bin
    }

    /// Runs lines of a shell, with both outputs in one, where the program is installed.
    pub(crate) fn run_lines(&self, lines: &str) -> Ran {
        let path = format!("{}:{}", self.install().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1; {lines}")]).current_dir(self.path(".")).env("PATH", path);
        command.env("LEASEHOLD_STORE", self.store()).env("XDG_STATE_HOME", self.path("."));
        Ran::from(command.output().unwrap())
    }

    /// Starts the program in the background; what it says is kept.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        Started::new(&mut self.leasehold(arguments))
    }

    /// `exec` of a shell script on the lock `job`. The script's own process is `$$`.
    pub(crate) fn start_job(&self, options: &[&str], script: &str) -> Started {
        self.start(&[&["exec"], options, &["job", "--", "sh", "-c", script]].concat())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits for a file with a line in it.
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        wait_for(name, || self.read(name).ends_with('\n'));
        self.read(name).trim().to_owned()
    }

    pub(crate) fn wait_for_file_exists(&self, name: &str) {
        wait_for(name, || self.path(name).exists());
    }

    /// Waits for a file that holds a process id.
    pub(crate) fn wait_for_pid(&self, name: &str) -> Pid {
        Pid::from_raw(self.wait_for_file(name).parse().unwrap()).unwrap()
    }

    /// Returns true if somebody holds the lock `job`.
    pub(crate) fn is_held(&self) -> bool {
        match self.run(&["inspect", "job"]).status {
            0 => true,
            1 => false,
            other => panic!("inspect ends with {other}"),
        }
    }
}

/// The first block of a language in a page that begins with these words, without the prompts of a terminal.
#[track_caller]
pub(crate) fn block(page: &str, language: &str, start: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{language}\n{start}")).expect("the page has the block");
    let text = format!("{start}{}", rest.split_once("```").unwrap().0);
    text.lines().map(|line| line.trim_start_matches("$ ")).collect::<Vec<_>>().join("\n")
}

/// A program that ended. A signal as its end counts as a status above 1000.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: number(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn number(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 1_000 + status.signal().unwrap())
}

impl Ran {
    #[track_caller]
    pub(crate) fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in stderr: {}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says_nothing_of(self, secret: &str) -> Self {
        assert!(!format!("{self:?}").contains(secret), "{self:?}");
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// A program that runs; killed when a test ends before it.
pub(crate) struct Started {
    child: Child,
    /// Not pipes, whose end comes only with that of the last process that has them.
    stdout: File,
    stderr: File,
}

impl Started {
    pub(crate) fn new(command: &mut Command) -> Self {
        let files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        let [stdout, stderr] = files.each_ref().map(|file| file.try_clone().unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        let [stdout, stderr] = files;
        Self { child, stdout, stderr }
    }

    /// With its output where `command` says.
    pub(crate) fn unseen(command: &mut Command) -> Self {
        let nothing = || File::open("/dev/null").unwrap();
        Self { child: command.spawn().unwrap(), stdout: nothing(), stderr: nothing() }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its stderr so far, 64 KiB at most. The place where it goes on to write is not moved.
    pub(crate) fn said(&self) -> String {
        let mut bytes = vec![0; 65_536];
        let count = self.stderr.read_at(&mut bytes, 0).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> Ran {
        wait_for("the end of a program", || !self.runs());
        let status = number(self.child.wait().unwrap());
        let [stdout, stderr] = [&self.stdout, &self.stderr].map(|mut file| {
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        });
        Ran { status, stdout, stderr }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}

/// The signals that a process catches, as a bit set.
pub(crate) fn caught_by(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap()
}

/// The processes that the main thread of a process has started.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", pid.as_raw_pid())).unwrap();
    children.split_whitespace().map(|child| Pid::from_raw(child.parse().unwrap()).unwrap()).collect()
}

/// Returns true if a process runs, or could. One that has ended and was not reaped does not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

pub(crate) fn is_stopped(pid: Pid) -> bool {
    state(pid) == Some('T')
}

#[track_caller]
pub(crate) fn wait_for_death(pid: Pid) {
    wait_for("the death of a process", || !is_alive(pid));
}

/// The letter that the system shows for a process.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.as_raw_pid().to_string()).join("stat")).ok()?;
    // The name in parentheses may contain anything.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
