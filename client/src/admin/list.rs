//! Listing the locks of a store and its runs, page by page.

use std::collections::{HashSet, VecDeque};

use leasehold_core::op::{Applied, Denial, DenialKind, Outcome, Refusal, Seen};
use leasehold_core::quorum::majority;
use leasehold_core::view::View;
use leasehold_core::{Attempts, Resource};
use leasehold_wire::listing::{Page, Which};

use crate::admin::inspect::{error_of, holder, listed, unavailable};
use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::host::sync::Arc;
use crate::runs::attempts;
use crate::runs::completion::Completion;
use crate::runs::once::RunInfo;

/// The held locks of a store, asked for page by page: see [`Client::list`].
///
/// It remembers the names that it has given, so that none comes twice.
#[derive(Debug)]
#[must_use = "nothing is asked before the first lock is taken from it"]
pub struct Listing(pub(crate) Paged<LockInfo>);

/// The runs of a store that are done or under way, asked for page by page: see [`Client::runs`].
///
/// It remembers the names that it has given, so that none comes twice.
#[derive(Debug)]
#[must_use = "nothing is asked before the first run is taken from it"]
pub struct Runs(pub(crate) Paged<RunInfo>);

/// Records, and what is shown of them.
#[derive(Debug)]
pub struct Paged<T> {
    records: Records,
    ready: VecDeque<T>,
    shown: fn(&Client, Record) -> Option<T>,
}

/// Records page by page.
#[derive(Debug)]
struct Records {
    client: Client,
    prefix: String,
    which: Which,
    place: PageStart,
    given: HashSet<Resource>,
}

/// A record as the store shows it.
pub(crate) struct Record {
    name: Resource,
    holder: Option<LockInfo>,
    done: Option<Completion>,
    attempts: Option<Attempts>,
}

/// The place where the next page begins.
#[derive(Clone, Debug, Default)]
pub struct PageStart {
    node: usize,
    after: Vec<u8>,
    /// Of a quorum: the nodes that were listed to their ends, and those that could not be.
    ended: usize,
    failed: Vec<(usize, Error)>,
    is_over: bool,
}

impl Client {
    /// The locks that are held and whose names begin with `prefix`, in no promised order.
    ///
    /// ```
    /// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
    /// let mut locks = client.list("invoice/");
    /// while let Some(lock) = locks.next().await? {
    ///     println!("{}: {lock}", lock.resource);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is for looking, never for deciding: a lock that is taken or released meanwhile may be missing, or be shown all the
    /// same. One that is held throughout is shown once. Each page is a bounded request, whatever else the store keeps, and
    /// blocks nobody's locks. Keys of other programs are left out, and so are records that no client writes, which
    /// `leasehold doctor` may name, and those of sessions, which [`Client::sessions`] shows.
    ///
    /// Redis is asked by `SCAN`, all masters of a cluster in turn, and the user needs `+scan`. DynamoDB reads the whole
    /// table, which costs one read unit for each 4 KiB of it, and the right `dynamodb:Scan`. Of a quorum, so many nodes are
    /// listed that every lock with a majority is on one of them, and each name is then read on all, as
    /// [`Client::inspect`] does it: [`LockInfo::votes`] says how many nodes show the record.
    pub fn list(&self, prefix: impl Into<String>) -> Listing {
        let shown = |client: &Client, record: Record| record.holder.filter(|lock| client.record_of(lock).is_none());
        Listing(Paged { records: self.records(prefix, Which::Held), ready: VecDeque::new(), shown })
    }

    /// The runs whose resources begin with `prefix`, in no promised order: those whose completion stands, those that somebody is at, and
    /// those that have failed and whose attempts are counted. A resource is `name@key`, so `nightly@` has all occurrences of one job.
    ///
    /// ```
    /// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
    /// let mut runs = client.runs("nightly@");
    /// while let Some(run) = runs.next().await? {
    ///     println!("{} {:?}: {:?}", run.name, run.key, run.done);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// What is said of [`Client::list`] is true of it, too: the costs, the rights, and that it is for looking. Redis is asked for all
    /// keys that have an `@`, and each run that is found is read. DynamoDB needs a read for each that is done, beside the scan.
    pub fn runs(&self, prefix: impl Into<String>) -> Runs {
        let shown = |_: &Client, Record { name, holder, done, attempts }| {
            RunInfo::of(&name, holder, done).map(|run| RunInfo { attempts, ..run })
        };
        Runs(Paged { records: self.records(prefix, Which::Runs), ready: VecDeque::new(), shown })
    }

    fn records(&self, prefix: impl Into<String>, which: Which) -> Records {
        let place = PageStart::default();
        Records { client: self.clone(), prefix: prefix.into(), which, place, given: HashSet::new() }
    }

    /// Those of the named locks that are held.
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub(crate) async fn held_of(&self, names: Vec<Resource>) -> Result<Vec<LockInfo>, Error> {
        let unread = names.into_iter().map(|name| (name, None)).collect();
        let held = self.records("", Which::Held).read(unread).await?;
        Ok(held.into_iter().filter_map(|record| record.holder).collect())
    }
}

impl Listing {
    /// The records of sessions are shown, too.
    pub(crate) fn with_sessions(mut self) -> Self {
        self.0.shown = |_, record| record.holder;
        self
    }

    /// The next lock; `None` after the last one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a prefix that no name can have, [`ErrorKind::StoreUnavailable`],
    /// [`ErrorKind::StoreRefused`]. The next call tries the same page again.
    pub async fn next(&mut self) -> Result<Option<LockInfo>, Error> {
        self.0.next().await
    }

    /// The locks of the next page, after one bounded request for names and the reads that these need. It may be empty before
    /// the end; `None` after the last one. Locks that [`Listing::next`] has fetched and not given yet come first.
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub async fn page(&mut self) -> Result<Option<Vec<LockInfo>>, Error> {
        self.0.page().await
    }
}

impl Runs {
    /// The next run; `None` after the last one.
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub async fn next(&mut self) -> Result<Option<RunInfo>, Error> {
        self.0.next().await
    }

    /// The runs of the next page: see [`Listing::page`].
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub async fn page(&mut self) -> Result<Option<Vec<RunInfo>>, Error> {
        self.0.page().await
    }
}

impl<T> Paged<T> {
    /// The place that it has come to by [`Paged::page`].
    #[cfg(feature = "__ffi")]
    pub fn place(&self) -> PageStart {
        self.records.place.clone()
    }

    pub(crate) fn at(mut self, place: PageStart) -> Self {
        self.records.place = place;
        self
    }

    pub(crate) async fn next(&mut self) -> Result<Option<T>, Error> {
        loop {
            if let Some(one) = self.ready.pop_front() {
                return Ok(Some(one));
            }
            match self.page().await? {
                Some(page) => self.ready = page.into(),
                None => return Ok(None),
            }
        }
    }

    /// See [`Listing::page`].
    ///
    /// # Errors
    /// As there.
    pub async fn page(&mut self) -> Result<Option<Vec<T>>, Error> {
        if !self.ready.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ready).into()));
        }
        let Some(page) = self.records.page().await? else { return Ok(None) };
        Ok(Some(page.into_iter().filter_map(|record| (self.shown)(&self.records.client, record)).collect()))
    }
}

impl Records {
    /// The records of the next page; `None` after the last one.
    ///
    /// # Errors
    /// As [`Listing::next`].
    async fn page(&mut self) -> Result<Option<Vec<Record>>, Error> {
        if self.place.is_over {
            return Ok(None);
        }
        if !self.prefix.is_empty() {
            Resource::new(&self.prefix).map_err(|error| Error::config(error.to_string()))?;
        }
        self.client.driver().check_open()?;
        let nodes = self.client.driver().transports().len();
        let page = match self.names().await {
            Ok(page) => page,
            Err(error) if nodes == 1 => return Err(error),
            Err(error) => {
                let failed = (self.place.node, error);
                self.place.failed.push(failed);
                self.place.node += 1;
                self.place.after.clear();
                return self.check_nodes().map(|()| Some(Vec::new()));
            }
        };
        // A name may come twice in a page, too.
        let mut of_page = HashSet::new();
        let is_asked = |name: &Resource| self.which == Which::Held || name.may_be_of_run();
        let records = page.records.into_iter().filter(|(name, _)| is_asked(name) && !self.given.contains(name));
        let records = records.filter(|(name, _)| of_page.insert(name.clone())).collect();
        let mut found = self.read(records).await?;
        if self.which == Which::Runs {
            found = self.with_attempts(found).await?;
        }
        self.given.extend(found.iter().map(|record| record.name.clone()));
        match page.next {
            Some(next) => self.place.after = next,
            None => {
                self.place.after.clear();
                self.place.ended += 1;
                self.place.node += 1;
                // A lock with a majority is on at least one of so many nodes.
                self.place.is_over = self.place.ended > nodes - majority(nodes);
                self.check_nodes()?;
            }
        }
        Ok(Some(found))
    }

    /// Replaces the records of attempts by those of the runs that they are about, as far as these are neither done nor under way: the
    /// others are listed by themselves.
    ///
    /// # Errors
    /// As [`Listing::next`].
    async fn with_attempts(&self, found: Vec<Record>) -> Result<Vec<Record>, Error> {
        let counted: Vec<(Resource, Attempts)> = found
            .iter()
            .filter_map(|record| Some((record.name.run_of_attempts()?, attempts::shown(record.done.as_ref()?)?)))
            .collect();
        let unread = counted.iter().map(|(name, _)| (name.clone(), None)).collect();
        let listed: HashSet<Resource> = self.read(unread).await?.into_iter().map(|record| record.name).collect();
        let counted = counted.into_iter().filter(|(name, _)| !listed.contains(name) && !self.given.contains(name));
        let counted =
            counted.map(|(name, attempts)| Record { name, holder: None, done: None, attempts: Some(attempts) });
        let runs = found.into_iter().filter(|record| !record.name.is_beside_a_run());
        Ok(runs.chain(counted).collect())
    }

    /// # Errors
    /// All nodes were tried, and too few of them could be listed. The next page begins again.
    fn check_nodes(&mut self) -> Result<(), Error> {
        if self.place.is_over || self.place.node < self.client.driver().transports().len() {
            return Ok(());
        }
        let PageStart { failed, ended, .. } = std::mem::take(&mut self.place);
        let name = |node| self.client.shared.quorum().map_or("?", |quorum| quorum.name(node));
        let refused = failed.iter().all(|(_, error)| error.kind() == ErrorKind::StoreRefused);
        let kind = if refused { ErrorKind::StoreRefused } else { ErrorKind::StoreUnavailable };
        let nodes = self.client.stores().len();
        let needed = nodes - majority(nodes) + 1;
        let failed: Vec<_> = failed.into_iter().map(|(node, error)| (name(node), error)).collect();
        let why = listed(&failed);
        let what =
            format!("locks may be missing: {needed} of {nodes} nodes must be listed, and {ended} could be: {why}");
        Err(Error::new(kind, what))
    }

    async fn names(&self) -> Result<Page, Error> {
        let Some(transport) = self.client.driver().transports().get(self.place.node) else {
            return Ok(Page::default());
        };
        let (transport, which) = (Arc::clone(transport), self.which);
        let (prefix, after) = (self.prefix.clone(), self.place.after.clone());
        self.client.offload(move || transport.list(&prefix, &after, which)).await?
    }

    /// Those of the named records that are asked for. Records without contents are read.
    ///
    /// # Errors
    /// Too few nodes answer.
    async fn read(&self, records: Vec<(Resource, Option<Seen>)>) -> Result<Vec<Record>, Error> {
        let is_one = self.client.driver().transports().len() == 1;
        if is_one { self.of_one(records).await } else { self.of_all(records).await }
    }

    /// # Errors
    /// A record could not be read; those that no client writes are left out.
    async fn of_one(&self, records: Vec<(Resource, Option<Seen>)>) -> Result<Vec<Record>, Error> {
        let unread: Vec<Resource> =
            records.iter().filter(|(_, seen)| seen.is_none()).map(|(name, _)| name.clone()).collect();
        let mut read = match unread.is_empty() {
            true => Vec::new(),
            false => self.client.driver().read_records(0..1, &unread).await?.pop().unwrap_or_default(),
        }
        .into_iter();
        let mut found = Vec::with_capacity(records.len());
        let (mut names, mut outcomes) = (Vec::new(), Vec::new());
        for (name, seen) in records {
            names.push(name);
            outcomes.push(match seen {
                Some(seen) => Outcome::Applied(Applied::Read(seen)),
                None => read.next().unwrap_or_else(|| Outcome::Applied(Applied::Read(Seen::default()))),
            });
        }
        self.client.driver().look_at_sessions(0, &mut outcomes).await?;
        for (name, outcome) in names.into_iter().zip(outcomes) {
            let seen = answered(outcome)?.unwrap_or_default();
            if self.which.has(&name, &seen) {
                let holder = seen.held().map(|holding| LockInfo::shown(name.as_str(), holding));
                found.push(Record { name, holder, done: seen.done.as_deref().map(Completion::shown), attempts: None });
            }
        }
        Ok(found)
    }

    /// # Errors
    /// Too few nodes answer.
    async fn of_all(&self, records: Vec<(Resource, Option<Seen>)>) -> Result<Vec<Record>, Error> {
        let nodes = self.client.driver().transports().len();
        let names: Vec<Resource> = records.into_iter().map(|(name, _)| name).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let outcomes = self.client.driver().read_all(0..nodes, &names).await?;
        let mut outcomes: Vec<_> = outcomes.into_iter().map(Vec::into_iter).collect();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let (mut shown, mut failed) = (Vec::with_capacity(nodes), None);
            for outcomes in &mut outcomes {
                shown.push(outcomes.next().and_then(|outcome| {
                    answered(outcome).unwrap_or_else(|error| {
                        failed = Some(error);
                        None
                    })
                }));
            }
            let view = View::new(shown);
            match failed {
                Some(error) if nodes - view.silent() < majority(nodes) => {
                    let what = format!("locks may be missing: no majority of the nodes answers: {error}");
                    return Err(Error::new(error.kind(), what).on(name.as_str()));
                }
                Some(_) | None => {
                    let record = Record {
                        holder: holder(&view, name.as_str()),
                        done: view.done().as_ref().map(Completion::shown),
                        name,
                        attempts: None,
                    };
                    let is_done = self.which == Which::Runs && record.done.is_some();
                    found.extend(Some(record).filter(|record| is_done || record.holder.is_some()));
                }
            }
        }
        Ok(found)
    }
}

/// The content of a record; `None` of one that no client writes.
fn answered(outcome: Outcome) -> Result<Option<Seen>, Error> {
    match outcome {
        Outcome::Applied(Applied::Read(seen)) => Ok(Some(seen)),
        Outcome::Applied(_) => Err(Error::new(ErrorKind::StoreUnavailable, "its answer fits another question")),
        Outcome::Unknown(fault) => Err(unavailable(&fault)),
        Outcome::NotApplied(Refusal::Denied(Denial { kind, .. })) if kind != DenialKind::Permission => Ok(None),
        Outcome::NotApplied(refusal) => Err(error_of(&refusal)),
    }
}
