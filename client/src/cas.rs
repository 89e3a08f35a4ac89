//! Compare-and-set in DynamoDB: updates of single items that need no lock.
//!
//! Where one small item is changed now and then, and making the change anew costs nothing, no lock is needed: read the
//! item, make the new value, and write it on the condition that nobody has written meanwhile; otherwise once more.
//!
//! ```no_run
//! use leasehold::cas;
//!
//! let url = "dynamodb://items?region=eu-west-1";
//! let item = cas::update(url, "visits", |old| {
//!     let count = old.and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok()).unwrap_or(0_u64);
//!     Some((count + 1).to_string().into_bytes())      // None leaves it as it is
//! })?;
//! # Ok::<(), cas::Error>(())
//! ```
//!
//! The function may run several times, so it should do nothing but compute. To *do* something once (send a
//! mail, call another service), use a lock. Where many write the same item all the time, neither is right: give each
//! writer an item of its own. `docs/compare-and-set.md` says more.
//!
//! # Table
//! Any table with keys as locks want them; [`table::create`](crate::table::create) makes one. Better not the table of
//! the locks: the AWS lock client for Java cannot list a table with other rows in it. Rows of locks are never touched.
//! Items are not to be deleted, and DynamoDB's time to live is not set on them. The rights that are needed are those of
//! locks.

use std::fmt;
use std::sync::Arc;

use leasehold_core::op::Outcome;
use leasehold_wire::dynamodb::cas::{self as wire, Failure, Next};

use crate::error::{Error as Trouble, ErrorKind};
use crate::exec;
use crate::transport::dynamodb::Dynamodb;
use crate::url::StoreUrl;
use crate::url::dynamodb::DynamodbUrl;

/// How often an update is tried unless set otherwise.
const TRIES: u32 = 10;

/// The items of one table. Clones share its connections.
#[derive(Clone)]
pub struct Items {
    store: Arc<Dynamodb>,
    url: Arc<DynamodbUrl>,
    tries: u32,
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

/// Why an update has not come through, how often it was tried, and whether it may have been written all the same.
#[derive(Clone, Debug)]
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

/// Connects to the table that a url names, updates one item there, and returns it: see [`Items::update`]. Blocks.
///
/// # Errors
/// As for [`Items::connect`] and [`Items::update`].
pub fn update(url: &str, name: &str, new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Option<Item>, Error> {
    Items::connect(url).map_err(Error::before)?.update(name, new)
}

impl Items {
    /// Connects to the table that a url names, such as `dynamodb://items?region=eu-west-1`. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for another url; otherwise as for [`Client::connect`](crate::Client::connect).
    pub fn connect(url: &str) -> Result<Self, Trouble> {
        let url: StoreUrl = url.parse()?;
        let StoreUrl::Dynamodb(url) = url else {
            return Err(Trouble::config(format!(
                "{url} has no items to compare and set; write dynamodb://TABLE?region=eu-west-1"
            )));
        };
        let store = Arc::new(Dynamodb::open(&url)?);
        Ok(Self { store, url: Arc::new(url), tries: TRIES })
    }

    /// How often an update is tried, at least once; 10 unless set. Between tries it sleeps, at first up to 50 ms, then up
    /// to twice as long each time, at most 2 s; for a table that asks for patience from 200 ms to 20 s.
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
        let settings = self.store.settings();
        let request = wire::get(settings, name).map_err(|denial| Trouble::config(denial.to_string()).on(name))?;
        let got = match self.store.admin().ask(request).await {
            Ok(response) => wire::got(settings, name, &response),
            Err(outcome) => Err(outcome),
        };
        got.map(|item| item.map(Item::of)).map_err(|outcome| self.store.judged(outcome).on(name))
    }

    /// Gives `new` the value of an item, `None` where there is no item yet, and writes what it returns, if nobody has
    /// written meanwhile; otherwise it is asked again, with the newer value. Where it returns `None`, nothing is written,
    /// and the answer is `None`. Blocks.
    ///
    /// A value has at most 380 KiB. A write whose answer is lost is recognised, and applied once.
    ///
    /// # Errors
    /// Others were faster each time ([`Error::is_contended`]), or as for [`Items::read`]; [`Error::fate`] says whether the
    /// value may have been written. [`Error::tries`] says how often it was tried.
    pub fn update(&self, name: &str, new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Option<Item>, Error> {
        exec::block_on(self.update_async(name, new))
    }

    /// As [`Items::update`], without blocking. Dropped before its end, the value may have been written or not.
    ///
    /// # Errors
    /// As [`Items::update`].
    pub async fn update_async(
        &self,
        name: &str,
        mut new: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Item>, Error> {
        let config = |trouble: String| Error::before(Trouble::config(trouble).on(name));
        let mut update =
            wire::Update::new(self.store.settings(), name, self.tries).map_err(|denial| config(denial.to_string()))?;
        let admin = self.store.admin();
        loop {
            let answer = admin.ask(update.request().clone()).await;
            match update.answer(answer.as_ref().map_err(Outcome::clone)) {
                Next::Decide => {
                    let Some(value) = new(update.current().map(|item| item.value.as_slice())) else { return Ok(None) };
                    let id = random().map_err(|error| self.failed(name, &update, Fate::NotWritten, error))?;
                    if let Err(denial) = update.write(value, id) {
                        return Err(self.failed(name, &update, Fate::NotWritten, Trouble::config(denial.to_string())));
                    }
                }
                Next::Pause(pace, tries) => {
                    // Without randomness it waits for the longest that it might have.
                    admin.sleep(pace.sleep(tries, getrandom::u32().unwrap_or(u32::MAX))).await;
                }
                Next::Done(item) => return Ok(Some(Item::of(item))),
                Next::Failed(failure) => return Err(self.judged(name, &update, failure)),
            }
        }
    }

    fn judged(&self, name: &str, update: &wire::Update, failure: Failure) -> Error {
        let (fate, trouble) = match failure {
            Failure::Contended => {
                let advice = "too many write it at the same time: partition it, or take a lock";
                let what = format!("{}: others were faster, {} times; {advice}", self.url, update.tries());
                (Fate::NotWritten, Trouble::new(ErrorKind::Busy, what))
            }
            Failure::Refused(refusal) => (Fate::NotWritten, self.store.judged(Outcome::NotApplied(refusal))),
            Failure::Unavailable(fault) => (Fate::NotWritten, self.store.judged(Outcome::Unknown(fault))),
            Failure::Unknown(fault) => (Fate::Unknown, self.store.judged(Outcome::Unknown(fault))),
        };
        self.failed(name, update, fate, trouble)
    }

    fn failed(&self, name: &str, update: &wire::Update, fate: Fate, trouble: Trouble) -> Error {
        Error { fate, tries: update.tries(), trouble: trouble.on(name) }
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Items({})", self.url)
    }
}

impl Item {
    fn of(item: wire::Item) -> Self {
        Self { value: item.value, version: item.version }
    }
}

impl Error {
    fn before(trouble: Trouble) -> Self {
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.trouble)
    }
}

fn random() -> Result<[u8; 16], Trouble> {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Trouble::config(format!("the system gives no random numbers: {error}"))),
    }
}
