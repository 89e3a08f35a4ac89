//! Guards for data in this process.

use leasehold_core::Token;
use leasehold_core::fence::{Guard, Rejected};

use crate::marks::number;
use crate::sync::{Arc, Condvar, HashMap, Mutex, MutexGuard, unpoisoned};
use crate::{Error, ErrorKind};

/// The marks of many items in one process, for any number of threads.
///
/// For programs that serve requests with tokens: a server that keeps its data in memory, or that is the only way to a
/// device. Each item has a lock of its own, so that a slow write holds up nobody but those who want the same item.
///
/// # Memory
/// A mark is never dropped by itself, since that would let late holders in again. So there is one small record for each
/// item that was ever claimed, as long as its name plus about 100 bytes, and at most as many as [`Guards::new`] is told;
/// [`Guards::forget`] drops one. Marks end with the process: where data outlives it, keep the marks beside the data.
///
/// ```
/// use leasehold_fence::Guards;
///
/// # let (older, token) = (33, 34); // lease.token()
/// # let balance = std::sync::atomic::AtomicI64::new(100);
/// # use std::sync::atomic::Ordering::SeqCst;
/// let guards = Guards::new(10_000);
///
/// guards.claim("invoice/42", token)?; // before the first read
/// let total = balance.load(SeqCst);
/// guards.with("invoice/42", token, || balance.store(total + 10, SeqCst))?; // with every write
///
/// // A holder of an older token is rejected.
/// let late = guards.with("invoice/42", older, || balance.store(0, SeqCst)).unwrap_err();
/// assert_eq!(late.kind(), leasehold_fence::ErrorKind::StaleToken);
/// # Ok::<(), leasehold_fence::Error>(())
/// ```
#[derive(Debug)]
pub struct Guards {
    most: usize,
    slots: Mutex<HashMap<String, Arc<Item>>>,
}

#[derive(Debug, Default)]
struct Item {
    slot: Mutex<Slot>,
    /// Rung when a write ends.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    guard: Guard,
    /// A write was let through and goes on, perhaps on another thread than the one that asked.
    is_written: bool,
    /// Somebody may still come with a slot that is no longer in the map. A claim there would raise a mark that nobody
    /// else sees.
    forgotten: bool,
}

impl Guards {
    /// No marks yet, and never more than `most` items.
    pub fn new(most: usize) -> Self {
        Self { most, slots: Mutex::default() }
    }

    /// Makes `token` the only one that is accepted from now on, apart from higher ones. Call it with each new lease,
    /// **before** reading the item. It waits for a write that has been let through by [`Guards::with`].
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the item; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1. [`ErrorKind::StoreRefused`] when there is no room for another
    /// item.
    pub fn claim(&self, item: &str, token: u64) -> Result<(), Error> {
        let token = number(token)?;
        loop {
            let slot = self.slot_or_new(item)?;
            let mut slot = slot.idle();
            if !slot.forgotten {
                return slot.guard.claim(token).map_err(|rejected| Error::from(rejected).on(item));
            }
        }
    }

    /// Writes if `token` may: nobody can claim the item between the check and the end of `write`. What `write` answers
    /// is passed on.
    ///
    /// `write` must not come back for the same item, which would wait for itself; other items are fine if everybody
    /// nests them in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed the item; the message has both tokens.
    /// [`ErrorKind::Config`] for a token above 2^53 - 1 and for an item that was never claimed. In all cases `write` has
    /// not been called.
    pub fn with<R>(&self, item: &str, token: u64, write: impl FnOnce() -> R) -> Result<R, Error> {
        let _writing = self.enter(item, token, None)?;
        Ok(write())
    }

    /// As [`Guards::with`], and also refuses delayed writes of the same lease: `number` starts at 1 and must grow with
    /// each write.
    ///
    /// # Errors
    /// As [`Guards::with`]; [`ErrorKind::StaleToken`] also when a write with this number or a higher one came first.
    pub fn with_in_order<R>(&self, item: &str, token: u64, number: u64, write: impl FnOnce() -> R) -> Result<R, Error> {
        let _writing = self.enter(item, token, Some(number))?;
        Ok(write())
    }

    /// Checks if a write with `token` would be let through now.
    ///
    /// This is for callers that no other thread can overtake. Wherever another holder could claim between this check and
    /// the write, write in [`Guards::with`].
    ///
    /// # Errors
    /// As [`Guards::with`].
    pub fn check(&self, item: &str, token: u64) -> Result<(), Error> {
        self.with(item, token, || ())
    }

    /// As [`Guards::check`], and also refuses delayed writes of the same lease: `number` starts at 1 and must grow with
    /// each write.
    ///
    /// # Errors
    /// As [`Guards::with_in_order`].
    pub fn check_in_order(&self, item: &str, token: u64, number: u64) -> Result<(), Error> {
        self.with_in_order(item, token, number, || ())
    }

    /// The highest token that has claimed the item; `None` where none has.
    pub fn high_water(&self, item: &str) -> Option<u64> {
        let slot = self.slot(item)?;
        let slot = slot.idle();
        slot.guard.high_water().map(Token::get)
    }

    /// Drops the mark of an item that nobody will write again, and gives its room back.
    ///
    /// A late write is still refused, since the item counts as never claimed. A late *claim* is not: after this, the
    /// first claim starts again, with any token. It waits for a write that is under way.
    pub fn forget(&self, item: &str) {
        let Some(shared) = self.slot(item) else { return };
        let mut slot = shared.idle();
        if !slot.forgotten {
            *slot = Slot { forgotten: true, ..Slot::default() };
            unpoisoned(self.slots.lock()).remove(item);
        }
    }

    /// Lets a write through, as [`Guards::with`] and [`Guards::with_in_order`] do, until the answer is dropped.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn enter(&self, item: &str, token: u64, number: Option<u64>) -> Result<Writing, Error> {
        let token = self::number(token)?;
        let on = |rejected: Rejected| Error::from(rejected).on(item);
        let shared = self.slot(item).ok_or_else(|| on(Rejected::Unclaimed))?;
        let mut slot = shared.idle();
        let checked = match number {
            None => slot.guard.check(token),
            Some(number) => slot.guard.check_in_order(token, number),
        };
        checked.map_err(on)?;
        slot.is_written = true;
        drop(slot);
        Ok(Writing(shared))
    }

    // The map is locked for the look-up only: a caller that waits for one item must not delay others.
    fn slot(&self, item: &str) -> Option<Arc<Item>> {
        unpoisoned(self.slots.lock()).get(item).map(Arc::clone)
    }

    fn slot_or_new(&self, item: &str) -> Result<Arc<Item>, Error> {
        let mut slots = unpoisoned(self.slots.lock());
        if let Some(slot) = slots.get(item) {
            return Ok(Arc::clone(slot));
        }
        if slots.len() >= self.most {
            let message =
                format!("{} items are claimed, which is the limit: forget those that are no longer used", self.most);
            return Err(Error::new(ErrorKind::StoreRefused, message).on(item));
        }
        let slot = Arc::default();
        slots.insert(item.to_owned(), Arc::clone(&slot));
        Ok(slot)
    }
}

impl Item {
    /// Waits until no write is under way.
    fn idle(&self) -> MutexGuard<'_, Slot> {
        unpoisoned(self.written.wait_while(unpoisoned(self.slot.lock()), |slot| slot.is_written))
    }
}

/// A write that was let through: nobody can claim its item before this is dropped.
#[derive(Debug)]
pub struct Writing(Arc<Item>);

impl Drop for Writing {
    fn drop(&mut self) {
        unpoisoned(self.0.slot.lock()).is_written = false;
        self.0.written.notify_all();
    }
}
