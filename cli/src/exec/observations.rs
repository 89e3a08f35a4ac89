//! Observations of holders in a folder: a process that gives up tells later ones of this machine what it has seen.
//!
//! One file for each record, named by store and resource. It says since when a version of the record has been seen, by both clocks.
//! Whatever is wrong with a file, it is as if it were absent: then the holder is watched for a longer time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::{Client, ffi};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::args::WatchingArgs;
use crate::output::say;

/// More than any file that was written here.
const LONGEST_FILE: u64 = 64 * 1024;

/// The observations that earlier processes have made of the holders of some locks.
pub(crate) struct Observations {
    client: Client,
    resources: Vec<String>,
    /// `None` if nothing is kept.
    folder: Option<Folder>,
}

struct Folder {
    path: PathBuf,
    boot: String,
}

/// Since when a version of a record has been seen.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Observation {
    store: String,
    resource: String,
    version: String,
    boot: String,
    /// By the clock that goes on while the machine is suspended, from its start on.
    since_boot_ns: u64,
    since_unix_ms: u64,
}

impl Observations {
    /// Tells the client what earlier processes have seen of the locks.
    pub(crate) fn of(args: &WatchingArgs, client: &leasehold::Client, resources: Vec<String>) -> Self {
        let folder = args.observations.as_deref().and_then(|path| match Folder::open(path) {
            Ok(folder) => Some(folder),
            Err(error) => {
                say(format_args!("observations are not kept in {}: {error}", path.display()));
                None
            }
        });
        let observations = Self { client: client.clone(), resources, folder };
        observations.tell();
        observations
    }

    /// Asks for the lock. If somebody holds it, what was seen is kept; or it is asked for once more, if a holder that was seen before
    /// turned out to be dead.
    pub(crate) fn asked<B, T>(
        &self,
        ask: impl Fn() -> ControlFlow<B, T>,
        is_busy: impl Fn(&T) -> bool,
    ) -> ControlFlow<B, T> {
        let mut answer = ask();
        if self.folder.is_some()
            && matches!(&answer, ControlFlow::Continue(answer) if is_busy(answer))
            && self.is_dead()
        {
            answer = ask();
        }
        match &answer {
            ControlFlow::Continue(answer) if !is_busy(answer) => {}
            ControlFlow::Continue(_) | ControlFlow::Break(_) => self.keep(),
        }
        answer
    }

    fn tell(&self) {
        let Some(folder) = &self.folder else { return };
        for store in self.client.stores() {
            let store = store.to_string();
            for resource in &self.resources {
                let Some(seen) = folder.read(&store, resource) else { continue };
                let (Some(version), Some(ago)) = (bytes(&seen.version), seen.ago(ffi::clocks())) else { continue };
                ffi::seen_before(&self.client, resource, &store, version, ago);
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.resources.iter().any(|resource| ffi::sightings(&self.client, resource).iter().any(|seen| seen.is_over))
    }

    fn keep(&self) {
        let Some(folder) = &self.folder else { return };
        for resource in &self.resources {
            for seen in ffi::sightings(&self.client, resource) {
                if let Err(error) = folder.keep(resource, &seen) {
                    say(format_args!("an observation is not kept in {}: {error}", folder.path.display()));
                    return;
                }
            }
        }
    }
}

impl Observation {
    /// How long ago the version was first seen, by the clock that says the least; `None` if one of them says that it is yet to come.
    fn ago(&self, (now_ns, now_unix_ms): (u64, u64)) -> Option<Duration> {
        let by_boot = now_ns.checked_sub(self.since_boot_ns).map(Duration::from_nanos)?;
        let by_wall = now_unix_ms.checked_sub(self.since_unix_ms).map(Duration::from_millis)?;
        Some(by_boot.min(by_wall))
    }
}

impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let folder = OpenOptions::new().read(true).custom_flags(flags(OFlags::DIRECTORY)).open(path)?;
        must_be_ours(&folder)?;
        Ok(Self { path: path.to_owned(), boot: hex(ffi::boot_id()?) })
    }

    fn file(&self, store: &str, resource: &str) -> PathBuf {
        self.path.join(format!("{:016x}.json", fnv(&[store, "\n", resource])))
    }

    /// The observation of an earlier process, made since the machine was started.
    fn read(&self, store: &str, resource: &str) -> Option<Observation> {
        let options = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags(options)).open(self.file(store, resource)).ok()?;
        must_be_ours(&file).ok()?;
        let mut text = String::new();
        file.metadata().ok().filter(fs::Metadata::is_file)?;
        file.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
        let seen: Observation = serde_json::from_str(&text).ok()?;
        (seen.store == store && seen.resource == resource && seen.boot == self.boot).then_some(seen)
    }

    /// Keeps what was seen, unless another process has seen it before.
    fn keep(&self, resource: &str, seen: &ffi::Sighting) -> io::Result<()> {
        let (now_ns, now_unix_ms) = ffi::clocks();
        let ago = Duration::from_nanos(now_ns.saturating_sub(seen.since_ns));
        let ago_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        let new = Observation {
            store: seen.store.clone(),
            resource: resource.to_owned(),
            version: hex(seen.version),
            boot: self.boot.clone(),
            since_boot_ns: seen.since_ns,
            since_unix_ms: now_unix_ms.saturating_sub(ago_ms),
        };
        let known = self.read(&new.store, resource).filter(|known| known.version == new.version);
        let is_good = |known: &Observation| known.ago((now_ns, now_unix_ms)).is_some();
        if known.filter(is_good).is_some_and(|known| known.since_boot_ns <= new.since_boot_ns) {
            return Ok(());
        }
        let name = self.file(&new.store, resource);
        let draft = name.with_extension(std::process::id().to_string());
        // One of an earlier process of this number, which died while it wrote.
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file.write_all(serde_json::to_string(&new)?.as_bytes());
        drop(file);
        written.and_then(|()| fs::rename(&draft, &name)).inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }
}

/// # Errors
/// Somebody else could have written it.
fn must_be_ours(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    let why = match (metadata.uid() == geteuid().as_raw(), metadata.mode() & 0o022) {
        (true, 0) => return Ok(()),
        (false, _) => "it belongs to another user: name a folder of your own",
        (true, _) => "others may write to it: run `chmod go-w` on it",
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from((flags | OFlags::CLOEXEC).bits()).unwrap_or_default()
}

fn hex(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<[u8; 16]> {
    let is_hex = hex.len() == 32 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(hex, 16).ok()).flatten()?;
    Some(number.to_be_bytes())
}

/// A hash for names of files: the file itself says what it is about.
fn fnv(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
