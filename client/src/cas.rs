//! Compare-and-set: updates of single items that need no lock.
//!
//! Where one small item is changed now and then, and making the change again costs nothing, no lock is needed: read the
//! item, make the new value, and write it on the condition that nobody has written meanwhile; otherwise once more.
//!
//! ```
//! use leasehold::cas;
//!
//! let items = cas::Items::connect("memory:visits")?;      // or the url of any other store
//! let item = items.update("visits", |old| {
//!     let count = old.and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok()).unwrap_or(0_u64);
//!     Some((count + 1).to_string().into_bytes())          // None leaves it as it is
//! })?;
//! assert_eq!(item.unwrap().value, b"1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The function may run several times, so it should do nothing but compute. To *do* something once (send a
//! mail, call another service), use a lock. Where many write the same item all the time, neither is right: give each
//! writer an item of its own. `docs/compare-and-set.md` says more.
//!
//! # Stores
//! All single stores, by the same urls as locks; items and locks of one name do not touch each other. Items are not to be
//! deleted, and no expiry is set on them: write an empty value. On DynamoDB, better use a table of its own, since the AWS
//! lock client for Java cannot list a table with other rows; [`table::create`](crate::admin::table::create) makes one. On
//! PostgreSQL, [`schema::create`](crate::admin::schema::create) makes the table of items with that of locks. The rights that are
//! needed are those of locks, and on Redis also `HMGET` and `HSET`.

use std::fmt;

use leasehold_core::Resource;
use leasehold_core::op::{Denial, Fault, FaultKind, Refusal};
use leasehold_wire::cas as wire;

use crate::error::{Error as Trouble, ErrorKind};
use crate::exec;
use crate::host::sync::Arc;
use crate::host::time::Time;
use crate::stores::Stores;
use crate::transport::items::ItemStore;
use crate::transport::of;
use crate::url::StoreUrl;

/// How often an update is tried unless set otherwise.
const TRIES: u32 = 10;

/// The items of one store. Clones share its connections.
#[derive(Clone)]
pub struct Items {
    store: Arc<dyn ItemStore>,
    url: Arc<StoreUrl>,
    tries: u32,
    time: Time,
}

/// An item as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// 1 for the first value, and one more with each write.
    pub version: u64,
}

/// One update, step by step: for those whose decision is async, or may fail. See [`Items::begin`].
pub struct Update {
    items: Items,
    name: Resource,
    machine: wire::Update,
    /// The time to sleep before the next question.
    pause: Option<std::time::Duration>,
}

/// The next step of an [`Update`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Decide on a new value for this item, `None` where there is none yet, and go on with [`Update::write`]; or drop the
    /// update, and the item stays as it is.
    Decide(Option<Item>),
    /// The new value is in place.
    Written(Item),
}

/// Why an update has not come through, how often it was tried, and whether it may have been written all the same. `Debug` shows
/// the message and the kind of the cause.
#[derive(Clone)]
pub struct Error {
    fate: Fate,
    tries: u32,
    trouble: Trouble,
}

/// The state of the value after a failed update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Nothing was written.
    NotWritten,
    /// It may have been written, or may be yet: look at the item before you try again.
    Unknown,
}

/// Connects to the store that a url names, updates one item there, and returns it: see [`Items::update`]. Blocks.
///
/// # Errors
/// As for [`Items::connect`] and [`Items::update`].
pub fn update(url: &str, name: &str, new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Option<Item>, Error> {
    Items::connect(url).map_err(Error::before)?.update(name, new)
}

impl Items {
    /// Connects to the store that a url names, such as `redis://localhost`, or to the [`DefaultStore`](crate::DefaultStore).
    /// Blocks.
    ///
    /// # Errors
    /// As for [`Client::connect`](crate::Client::connect); a quorum has no items.
    pub fn connect(store: impl Stores) -> Result<Self, Trouble> {
        Self::of(&store.urls()?)
    }

    /// Those of a store that is open.
    #[cfg(feature = "testing")]
    pub(crate) fn over(store: Arc<dyn ItemStore>, url: StoreUrl, time: Time) -> Self {
        Self { store, url: Arc::new(url), tries: TRIES, time }
    }

    fn of(urls: &[StoreUrl]) -> Result<Self, Trouble> {
        let [url] = urls else {
            let what = format!("items are kept by one store, and {} are named: name one of them", urls.len());
            return Err(Trouble::config(what));
        };
        let place = url.place()?;
        Ok(Self { store: place.items()?, url: Arc::new(place.into()), tries: TRIES, time: Time::System })
    }

    /// As [`Items::connect`], without blocking.
    ///
    /// # Errors
    /// As [`Items::connect`].
    pub async fn connect_async(store: impl Stores) -> Result<Self, Trouble> {
        let urls = store.urls()?;
        Time::System.offload(move || Self::of(&urls)).await?
    }

    /// How often an update is tried, at least once; 10 unless set. Between tries it sleeps, at first up to 50 ms, then up
    /// to twice as long each time, at most 2 s; for a store that asks for patience from 200 ms to 20 s.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        Self { tries: tries.max(1), ..self }
    }

    /// The item as it is; `None` where there is none. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name that is empty, longer than those of locks, or has a control character;
    /// [`ErrorKind::StoreRefused`] for a row that is no such item; [`ErrorKind::StoreUnavailable`].
    pub fn read(&self, name: &str) -> Result<Option<Item>, Trouble> {
        exec::block_on(self.read_async(name))
    }

    /// As [`Items::read`], without blocking.
    ///
    /// # Errors
    /// As [`Items::read`].
    pub async fn read_async(&self, name: &str) -> Result<Option<Item>, Trouble> {
        let mut reading = self.clone().tries(1).begin(name).map_err(|error| error.trouble)?;
        match reading.step_async().await.map_err(|error| error.trouble)? {
            Step::Decide(item) => Ok(item),
            Step::Written(_) => Ok(None),
        }
    }

    /// Gives `new` the value of an item, `None` where there is no item yet, and writes what it returns, if nobody has
    /// written meanwhile; otherwise it is asked again, with the newer value. Where it returns `None`, nothing is written,
    /// and the answer is `None`. Blocks.
    ///
    /// `new` runs on the calling thread. A value has at most 380 KiB. A write whose answer is lost is recognised, and
    /// applied once.
    ///
    /// # Errors
    /// Others were faster each time ([`Error::is_contended`]), or as for [`Items::read`]; [`Error::fate`] says whether the
    /// value may have been written. [`Error::tries`] says how often it was tried.
    pub fn update(&self, name: &str, new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Option<Item>, Error> {
        exec::block_on(self.update_async(name, new))
    }

    /// As [`Items::update`], without blocking; `new` runs where the future is polled. Dropped before its end, the value may
    /// have been written or not.
    ///
    /// # Errors
    /// As [`Items::update`].
    pub async fn update_async(
        &self,
        name: &str,
        mut new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Item>, Error> {
        let mut update = self.begin(name)?;
        loop {
            match update.step_async().await? {
                Step::Decide(item) => match new(item.as_ref().map(|item| item.value.as_slice())) {
                    Some(value) => update.write(value)?,
                    None => return Ok(None),
                },
                Step::Written(item) => return Ok(Some(item)),
            }
        }
    }

    /// Begins an update that the caller takes step by step, with whatever it awaits or fails by in between. Asks nothing yet.
    ///
    /// ```
    /// use leasehold::cas::{Items, Step};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn price() -> Result<Vec<u8>, std::io::Error> { Ok(Vec::new()) }
    /// let items = Items::connect_async("memory:prices").await?;
    /// let mut update = items.begin("price/4711")?;
    /// let written = loop {
    ///     match update.step_async().await? {
    ///         Step::Decide(_old) => update.write(price().await?)?, // an error ends it, and nothing is written
    ///         Step::Written(item) => break item,
    ///     }
    /// };
    /// assert_eq!(written.version, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`], for a name as in [`Items::read`].
    pub fn begin(&self, name: &str) -> Result<Update, Error> {
        let resource =
            Resource::new(name).map_err(|error| Error::before(Trouble::config(error.to_string()).on(name)))?;
        Ok(Update { items: self.clone(), name: resource, machine: wire::Update::new(self.tries), pause: None })
    }
}

impl Update {
    /// The next step. Blocks.
    ///
    /// # Errors
    /// As for [`Items::update`]; the update is over.
    pub fn step(&mut self) -> Result<Step, Error> {
        exec::block_on(self.step_async())
    }

    /// As [`Update::step`], without blocking.
    ///
    /// # Errors
    /// As [`Update::step`].
    pub async fn step_async(&mut self) -> Result<Step, Error> {
        loop {
            if let Some(pause) = self.pause.take() {
                // Without a thread to sleep on, it is tried at once.
                let _ = self.items.time.sleep(pause).await;
            }
            let answer = self.items.store.ask(&self.name, self.machine.ask()).await;
            match self.machine.answer(answer) {
                wire::Next::Ask => {}
                wire::Next::Decide => return Ok(Step::Decide(self.machine.current().map(Item::of))),
                wire::Next::Pause(backoff, tries) => {
                    // Without randomness it waits for the longest that it might have.
                    let mut jitter = [u8::MAX; 4];
                    let _ = self.items.time.fill(&mut jitter);
                    self.pause = Some(backoff.sleep(tries, u32::from_le_bytes(jitter)));
                }
                wire::Next::Done(item) => return Ok(Step::Written(Item::of(&item))),
                wire::Next::Failed(failure) => return Err(self.judged(failure)),
            }
        }
    }

    /// The value for the item that the last [`Step::Decide`] has shown. It is written by the next step.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a value of more than 380 KiB, or where there is nothing to decide; nothing was written.
    pub fn write(&mut self, value: impl Into<Vec<u8>>) -> Result<(), Error> {
        let mut id = [0; 16];
        self.items.time.fill(&mut id).map_err(|error| self.failed(Fate::NotWritten, error))?;
        let written = self.machine.write(value.into(), id);
        written.map_err(|denial| self.failed(Fate::NotWritten, Trouble::config(denial.to_string())))
    }

    fn judged(&self, failure: wire::Failure) -> Error {
        let url = &self.items.url;
        // If another kind of server answers, waiting does not help.
        let kind = |fault: &Fault| match fault.kind == FaultKind::Protocol {
            true => ErrorKind::StoreRefused,
            false => ErrorKind::StoreUnavailable,
        };
        let unavailable = |fault: &Fault| Trouble::new(kind(fault), of(url, fault));
        let (fate, trouble) = match failure {
            wire::Failure::Contended => {
                let advice = "too many clients write it at the same time: partition it, or take a lock";
                let what = format!("{url}: other clients wrote it first, {} times; {advice}", self.machine.tries());
                (Fate::NotWritten, Trouble::new(ErrorKind::Busy, what))
            }
            wire::Failure::Refused(refusal) => (Fate::NotWritten, refused(url, &refusal)),
            wire::Failure::Unavailable(fault) => (Fate::NotWritten, unavailable(&fault)),
            wire::Failure::Unknown(fault) => (Fate::Unknown, unavailable(&fault)),
        };
        self.failed(fate, trouble)
    }

    fn failed(&self, fate: Fate, trouble: Trouble) -> Error {
        Error { fate, tries: self.machine.tries(), trouble: trouble.on(self.name.as_str()) }
    }
}

fn refused(url: &StoreUrl, refusal: &Refusal) -> Trouble {
    match refusal {
        Refusal::Denied(Denial { detail, .. }) => Trouble::new(ErrorKind::StoreRefused, of(url, detail)),
        Refusal::NeedsCredentials(fault) => Trouble::new(ErrorKind::StoreRefused, of(url, fault)),
        Refusal::Throttled(fault) | Refusal::Unavailable(fault) => {
            Trouble::new(ErrorKind::StoreUnavailable, of(url, fault))
        }
        Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } => {
            Trouble::new(ErrorKind::StoreUnavailable, of(url, &"the answer does not fit the request"))
        }
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Items({})", self.url)
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Update({} in {})", self.name.as_str(), self.items.url)
    }
}

impl Item {
    fn of(item: &wire::Item) -> Self {
        Self { value: item.value.clone(), version: item.version }
    }
}

impl Error {
    pub(crate) fn before(trouble: Trouble) -> Self {
        Self { fate: Fate::NotWritten, tries: 0, trouble }
    }

    /// How often it was tried; 0 where nothing was sent.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// Returns whether the value may have been written.
    pub const fn fate(&self) -> Fate {
        self.fate
    }

    /// Others were faster, each time.
    pub const fn is_contended(&self) -> bool {
        matches!(self.trouble.kind(), ErrorKind::Busy)
    }

    /// Returns the cause of the failure.
    pub const fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// A stable name of the kind, for logs and other languages: that of the cause, or `too_many_conflicts`.
    pub const fn name(&self) -> &'static str {
        if self.is_contended() { "too_many_conflicts" } else { self.trouble.kind().name() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::NotWritten => "nothing was written",
            Fate::Unknown => "the value may have been written",
        };
        let times = if self.tries == 1 { "once".to_owned() } else { format!("{} times", self.tries) };
        write!(f, "{} (tried {times}; {fate})", self.trouble)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} (kind: {:?})", self.trouble.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.trouble)
    }
}
