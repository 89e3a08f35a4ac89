//! A store, the commands of both versions on it, and the file to which all work is written down.

use std::cell::{Cell, RefCell};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;
use crate::chaos::environment::StoreKind;
use crate::chaos::store::Store;
use crate::chaos::worker::QUORUM;
use crate::chaos::workers::launch;

/// The name of the job.
const JOB: &str = "job";
/// The work: a line in the file `$1` and one of output, both with the name of the version.
pub const WORK: &str = r#"echo "$LEASEHOLD_RESOURCE by $0" >> "$1"; echo "made by $0 with token $LEASEHOLD_TOKEN""#;
/// The ttl of runs, unless a quorum sets a shorter bound.
const TTL: Duration = Duration::from_secs(2);
/// The longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The status of a command whose work is done and whose output is not kept.
const NOT_KEPT: i32 = 74;

/// A version of the command.
#[derive(Debug)]
pub struct Version {
    pub name: &'static str,
    pub program: PathBuf,
}

impl Version {
    /// True for the one that keeps results.
    pub fn is_newer(&self) -> bool {
        self.name == "newer"
    }
}

/// A store with what was done on it.
pub struct World {
    /// Dropped, it is stopped.
    _store: Store,
    kind: StoreKind,
    urls: Vec<String>,
    ledger: PathBuf,
    /// True if the store has a place for results.
    has_place: bool,
    /// The keys that are done at the end.
    done: RefCell<Vec<String>>,
    keys: Cell<u32>,
    runs: Cell<u32>,
    results: Cell<u32>,
    missing: Cell<u32>,
}

/// The end of a command.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub stdout: String,
    stderr: String,
}

impl Ended {
    /// # Errors
    /// For any other status.
    pub fn with(self, status: i32) -> Result<Self> {
        if self.status == Some(status) { Ok(self) } else { Err(format!("not the status {status}: {self:?}").into()) }
    }

    /// True if the command says that the work was done before.
    pub fn said_done(&self) -> bool {
        self.stderr.contains("done already")
    }

    /// # Errors
    /// When the command does not say that the work was done before, or failed.
    pub fn was_done(self) -> Result<Self> {
        let this = self.with(0)?;
        if this.said_done() { Ok(this) } else { Err(format!("not done already: {this:?}").into()) }
    }
}

impl World {
    /// Starts a store, and lets a version make what it needs.
    ///
    /// # Errors
    /// When that fails.
    pub fn make(kind: StoreKind, maker: &Version, has_place: bool, folder: &Path) -> Result<Self> {
        let store = Store::start(kind, folder);
        let addresses = store.addresses();
        let urls = store.urls(0, |node| addresses[node]);
        let ledger = folder.join("ledger");
        fs::write(&ledger, "")?;
        let world = Self {
            _store: store,
            kind,
            urls,
            ledger,
            has_place,
            done: RefCell::default(),
            keys: Cell::default(),
            runs: Cell::default(),
            results: Cell::default(),
            missing: Cell::default(),
        };
        match kind {
            StoreKind::Dynamodb | StoreKind::Postgres => drop(world.ask(maker, &["store", "create"])?.with(0)?),
            StoreKind::Quorum => drop(world.ask(maker, &["quorum", "init"])?.with(0)?),
            // The first one makes the file, or the record of the store.
            _ => drop(world.does(maker, &world.key("first"), &[])?),
        }
        Ok(world)
    }

    /// Lets a version make what it lacks.
    ///
    /// # Errors
    /// When that fails.
    pub fn upgrade(&mut self, version: &Version) -> Result {
        self.ask(version, &["store", "create"])?.with(0)?;
        self.has_place = true;
        Ok(())
    }

    /// A key that was not used before.
    pub fn key(&self, name: &str) -> String {
        self.keys.set(self.keys.get() + 1);
        format!("{name}-{}", self.keys.get())
    }

    /// True if a run of this version has a result that is kept.
    pub fn keeps(&self, version: &Version) -> bool {
        self.has_place && version.is_newer()
    }

    /// Starts a command with the work.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, version: &Version, key: &str, options: &[&str], work: &str) -> Result<Child> {
        self.runs.set(self.runs.get() + 1);
        let mut words = vec!["once", "--key", key];
        let ttl = self.kind.max_ttl().unwrap_or(TTL).min(TTL);
        let ttl = format!("{}ms", ttl.as_millis());
        words.extend(["--ttl", &ttl]);
        if version.is_newer() {
            words.push("--save-output");
        }
        words.extend(options);
        let ledger = self.ledger.display().to_string();
        words.extend([JOB, "--", "sh", "-c", work, version.name, &ledger]);
        self.spawn(version, &words)
    }

    fn spawn(&self, version: &Version, words: &[&str]) -> Result<Child> {
        let mut all = vec![version.program.display().to_string()];
        for url in &self.urls {
            all.extend(["--store".to_owned(), url.clone()]);
        }
        if let Some(max_ttl) = self.kind.max_ttl() {
            let max_ttl = format!("{}ms", max_ttl.as_millis());
            all.extend(["--quorum-id", QUORUM, "--max-ttl", &max_ttl].map(str::to_owned));
        }
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let mut command = launch(&all)?;
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("LEASEHOLD_") {
                command.env_remove(name);
            }
        }
        Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    fn ask(&self, version: &Version, words: &[&str]) -> Result<Ended> {
        ended(self.spawn(version, words)?)
    }

    /// The command with the usual work.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn once(&self, version: &Version, key: &str, options: &[&str]) -> Result<Ended> {
        ended(self.start(version, key, options, WORK)?)
    }

    /// Does the work, which was not done. Answers its output.
    ///
    /// # Errors
    /// When it is not done now.
    pub fn does(&self, version: &Version, key: &str, options: &[&str]) -> Result<String> {
        let before = self.works(key)?;
        let ended = self.finished(version, self.once(version, key, options)?)?;
        if self.works(key)? != before + 1 || !ended.stdout.contains("made by") {
            return Err(format!("{key} was not done: {ended:?}").into());
        }
        Ok(ended.stdout)
    }

    /// Holds the end of a command that has done the work to what it must be.
    ///
    /// # Errors
    /// When it is something else.
    pub fn finished(&self, version: &Version, ended: Ended) -> Result<Ended> {
        ended.with(if version.is_newer() && !self.has_place { NOT_KEPT } else { 0 })
    }

    /// Expects that both see a key as done by this version, with this output or none.
    ///
    /// # Errors
    /// When one does the work again, or has another output.
    pub fn is_done(&self, key: &str, by: &Version, output: &str, both: [&Version; 2]) -> Result {
        let works = self.works(key)?;
        let kept = if self.keeps(by) { output } else { "" };
        // Twice, so that looking changes nothing either.
        for version in both.into_iter().chain(both) {
            let told = self.once(version, key, &[])?.was_done()?;
            let expected = if version.is_newer() { kept } else { "" };
            if told.stdout != expected {
                return Err(format!("{} was told {:?}, not {expected:?}", version.name, told.stdout).into());
            }
            if version.is_newer() {
                let count = if kept.is_empty() { &self.missing } else { &self.results };
                count.set(count.get() + 1);
            }
            let seen = self.ask(version, &["inspect", JOB, "--key", key, "--json"])?.with(0)?;
            if serde_json::from_str::<Value>(&seen.stdout)?["done"].is_null() {
                return Err(format!("{} inspects {}", version.name, seen.stdout).into());
            }
        }
        if self.works(key)? != works {
            return Err(format!("{key} was done again").into());
        }
        self.done.borrow_mut().push(format!("{JOB}@{key}"));
        Ok(())
    }

    /// Forgets that a key was done.
    ///
    /// # Errors
    /// When it was not done.
    pub fn forget(&self, version: &Version, key: &str) -> Result {
        self.ask(version, &["once", "--forget", "--key", key, JOB])?.with(0).map(drop)
    }

    /// How often the work of a key was begun.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn works(&self, key: &str) -> Result<usize> {
        let start = format!("{JOB}@{key} by ");
        Ok(fs::read_to_string(&self.ledger)?.lines().filter(|line| line.starts_with(&start)).count())
    }

    /// Waits until the work of a key was begun so often.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn wait_for_works(&self, key: &str, count: usize) -> Result {
        let start = Instant::now();
        while self.works(key)? < count {
            if start.elapsed() > PATIENCE {
                return Err(format!("the work of {key} was not begun").into());
            }
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Expects that the newer version lists all that is done, and that the older one sees no lock that is left.
    ///
    /// # Errors
    /// When something is missing.
    pub fn look_at_all(&self, older: &Version, newer: &Version) -> Result {
        self.ask(older, &["list"])?.with(1)?;
        let listed = self.ask(newer, &["runs", &format!("{JOB}@"), "--json"])?.with(0)?;
        let mut done = Vec::new();
        for line in listed.stdout.lines() {
            let run: Value = serde_json::from_str(line)?;
            if !run["done"].is_null() {
                done.extend(run["resource"].as_str().map(str::to_owned));
            }
        }
        match self.done.borrow().iter().find(|key| !done.contains(key)) {
            Some(missing) => Err(format!("{missing} is not listed as done").into()),
            None => Ok(()),
        }
    }

    /// The amounts, as a row of the table.
    pub fn row(&self) -> String {
        let done = u32::try_from(self.done.borrow().len()).unwrap_or_default();
        [self.runs.get(), done, self.results.get(), self.missing.get()].map(|count| count.to_string()).join(" | ")
    }
}

/// Waits for the end of a command.
///
/// # Errors
/// When its output cannot be read.
pub fn ended(child: Child) -> Result<Ended> {
    let output = child.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) })
}
