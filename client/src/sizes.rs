//! The number of permits, readers or shards, which all clients have to agree on.
//!
//! It is the label of the mark of a run, so that it needs no record of its own kind. The first client writes it. Clients read
//! it while they hold a permit, and it is changed only by a client that holds all of them.

use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::config::{MAX_KEEP, RunOptions};

use crate::all::Leases;
use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::once::{Mark, Once, RunRequest};
use crate::permits::MAX_PERMITS;

/// How long another client may take to write the number.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of locks that a semaphore or a lock for readers and writers consists of.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    name: String,
    kind: Kind,
    count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Permits,
    Readers,
    Shards,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Permits => "permits",
            Self::Readers => "readers",
            Self::Shards => "shards",
        }
    }

    /// How the number is changed.
    const fn change(self) -> &'static str {
        match self {
            Self::Permits | Self::Readers => "`leasehold permits set` changes it while nobody holds any",
            Self::Shards => "`set_shards` changes it while no worker runs",
        }
    }
}

impl Size {
    pub(crate) const fn of_permits(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Permits, count }
    }

    pub(crate) const fn of_readers(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Readers, count }
    }

    pub(crate) const fn of_shards(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Shards, count }
    }

    pub(crate) fn with_count(self, count: usize) -> Self {
        Self { count, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The lock that a writer holds, and that each reader passes through.
    pub(crate) fn gate(&self) -> String {
        format!("{}#gate", self.name)
    }

    /// The locks of which each holder has one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a number or a name that cannot be.
    pub(crate) fn resources(&self) -> Result<Vec<String>, Error> {
        let (word, count) = (self.kind.word(), self.count);
        if !(1..=MAX_PERMITS).contains(&count) {
            let message = format!("{word} is {count}; it can be 1 to {MAX_PERMITS}");
            return Err(Error::config(message).on(&self.name));
        }
        Resource::new(&self.name)?;
        let before = match self.kind {
            Kind::Permits => "#",
            Kind::Readers => "#reader",
            Kind::Shards => "#shard",
        };
        Ok(self.numbered(before))
    }

    /// The locks of which each worker that shares the shards has one.
    pub(crate) fn seats(&self) -> Vec<String> {
        self.numbered("#member")
    }

    fn numbered(&self, before: &str) -> Vec<String> {
        (0..self.count).map(|index| format!("{}{before}{index}", self.name)).collect()
    }

    /// All locks, as somebody takes them who lets nobody in.
    fn all_resources(&self) -> Result<Vec<String>, Error> {
        let mut all = self.resources()?;
        match self.kind {
            Kind::Permits => {}
            Kind::Readers => all.push(self.gate()),
            Kind::Shards => all.extend(self.seats()),
        }
        Ok(all)
    }

    /// The name of the run whose mark is the record.
    fn record(&self) -> String {
        format!("{}#{}", self.name, self.kind.word())
    }

    fn label(&self) -> String {
        format!("{}={}", self.kind.word(), self.count)
    }

    /// The number in a record, `None` if it is not ours.
    fn recorded(&self, mark: &Mark) -> Option<usize> {
        mark.owner.as_deref()?.strip_prefix(self.kind.word())?.strip_prefix('=')?.parse().ok()
    }

    /// # Errors
    /// [`ErrorKind::Config`]: the record has another number.
    fn check(&self, mark: &Mark) -> Result<(), Error> {
        let word = self.kind.word();
        match self.recorded(mark) {
            Some(recorded) if recorded == self.count => Ok(()),
            Some(recorded) => Err(Error::config(format!(
                "{word} is {} here, and {recorded} in the store: all clients must name the same number; {}",
                self.count,
                self.kind.change()
            ))
            .on(&self.name)),
            None => Err(Error::config(format!(
                "the record of the number of {word}, the mark of the run {:?}, is not one of leasehold's: forget it with \
                 `leasehold once --forget`",
                self.record()
            ))
            .on(&self.name)),
        }
    }
}

/// Compares the number with the one in the store, and writes it where there is none. The caller holds one of the locks.
///
/// # Errors
/// [`ErrorKind::Config`] where they differ, and as a run.
pub(crate) async fn agree(client: &Client, size: &Size, caller: Caller) -> Result<(), Error> {
    let found = client.inspect_run_by(&size.record(), None, caller).await?.done;
    if let Some(mark) = &found {
        size.check(mark)?;
        if mark.left > keep(client) / 2 {
            return Ok(());
        }
    }
    let request = if found.is_some() { writing(client, size).even_if_done() } else { writing(client, size) };
    write(size, request, caller).await
}

/// Changes the number.
///
/// # Errors
/// [`ErrorKind::Busy`] while somebody holds one of the locks.
pub(crate) async fn set(client: &Client, size: &Size, caller: Caller) -> Result<(), Error> {
    size.resources()?;
    let before = recorded(client, size, caller).await?;
    // Those of the old number, since only they are held, and the new ones in case the record was lost.
    let largest = size.clone().with_count(before.unwrap_or(0).clamp(size.count, MAX_PERMITS));
    let leases = hold_all(client, &largest, caller).await?;
    let changed = change(client, size, before, &leases, caller).await;
    let released = leases.release_each().await;
    changed.and(released)
}

async fn hold_all(client: &Client, size: &Size, caller: Caller) -> Result<Leases, Error> {
    let locks = client.lock_all(size.all_resources()?).ttl(ttl(client)).wait(Duration::ZERO);
    locks.acquire(caller).await
}

async fn change(
    client: &Client,
    size: &Size,
    before: Option<usize>,
    leases: &Leases,
    caller: Caller,
) -> Result<(), Error> {
    if recorded(client, size, caller).await? != before {
        let message = format!("somebody else changed the number of {} at the same time; look again", size.kind.word());
        return Err(Error::new(ErrorKind::Busy, message).on(&size.name));
    }
    leases.check(Duration::ZERO)?;
    write(size, writing(client, size).even_if_done(), caller).await
}

async fn recorded(client: &Client, size: &Size, caller: Caller) -> Result<Option<usize>, Error> {
    let found = client.inspect_run_by(&size.record(), None, caller).await?.done;
    Ok(found.and_then(|mark| size.recorded(&mark)))
}

fn writing(client: &Client, size: &Size) -> RunRequest {
    let request = client.once(size.record()).owner(size.label()).ttl(ttl(client)).keep(keep(client)).wait(PATIENCE);
    // A quorum that has lost the record gets a new one.
    request.trust_quorum()
}

async fn write(size: &Size, request: RunRequest, caller: Caller) -> Result<(), Error> {
    match request.begin(caller).await? {
        Once::Run(run) => run.finish_by(caller).await,
        Once::Done(mark) => size.check(&mark),
        Once::Running(_) => {
            let message = format!(
                "another client is writing down the number of {}, and has not finished within {PATIENCE:?}; try again",
                size.kind.word()
            );
            Err(Error::new(ErrorKind::StoreUnavailable, message).on(&size.name))
        }
    }
}

/// As long as the store allows. On a quorum the record is written again by those who use it.
fn keep(client: &Client) -> Duration {
    if client.shared.quorum().is_some() { RunOptions::default().keep } else { MAX_KEEP }
}

fn ttl(client: &Client) -> Duration {
    client.shared.quorum().map_or(PATIENCE, |quorum| quorum.max_ttl().min(PATIENCE))
}
