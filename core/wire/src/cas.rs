//! Compare-and-set: a new value for an item, if nobody has changed it since it was read. No lock takes part.
//!
//! This is what all stores have in common: the item, its record of the last writes, and the decisions. A store only reads
//! an item and writes it under a condition; the module of each has the requests: [`dynamodb::cas`](crate::dynamodb::cas),
//! [`etcd::cas`](crate::etcd::cas), [`objects::cas`](crate::objects::cas), [`postgres::cas`](crate::postgres::cas) and [`redis::cas`](crate::redis::cas).
//!
//! A write whose answer was lost is sent again as it was: either its condition still holds, or its id stands in the item,
//! or the item shows that others have come first. Only if so many others have written meanwhile that the item has
//! forgotten, nobody can tell, and the update ends as [`Failure::Unknown`]. Items are not deleted, for that forgets all.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use leasehold_core::backoff::Backoff;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

use crate::dynamodb::json::object;

/// The longest value, in bytes: DynamoDB's own bound, 400 KB, holds for the item as a whole.
pub const MAX_VALUE: usize = 380 << 10;

/// How many writes an item remembers.
pub const MOST_IDS: usize = 8;

/// Beyond it, other languages lose digits.
const MAX_VERSION: u64 = (1 << 53) - 1;

/// An item as it was read, or as it is to be written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// 1, and one more with every write.
    pub version: u64,
    /// The ids of the last writes, the newest first, 32 hexadecimal digits each, with spaces between; empty where
    /// another program wrote none.
    writes: String,
    /// The store's own version of the item, where it has one.
    pub(crate) tag: String,
}

impl core::fmt::Debug for Item {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "version {} with {} bytes", self.version, self.value.len())
    }
}

impl Item {
    /// An item of what a store shows; nothing for what is missing or of another type.
    ///
    /// # Errors
    /// It is no such item.
    pub fn read(version: Option<u64>, value: Option<Vec<u8>>, writes: Option<&str>) -> Result<Self, Refusal> {
        let version = version.filter(|version| (1..=MAX_VERSION).contains(version));
        let writes = writes.filter(|writes| writes.is_empty() || is_history(writes));
        match (version, value, writes) {
            (Some(version), Some(value), Some(writes)) => {
                Ok(Self { value, version, writes: writes.to_string(), tag: String::new() })
            }
            _ => Err(corrupt(
                "this is not an item of compare-and-set: one has a number `version`, a `value`, and as `writeIds` what \
                 was written there, or nothing",
            )),
        }
    }

    /// The item as a JSON object, for stores that keep texts; its value is Base64. `name` is kept where the key does not
    /// tell it. No two writes have the same text.
    pub(crate) fn to_json(&self, name: Option<&str>) -> String {
        let mut fields = json!({
            "version": self.version,
            "value": STANDARD.encode(&self.value),
            "writeIds": self.writes,
        });
        if let Some(name) = name {
            fields["name"] = name.into();
        }
        fields.to_string()
    }

    /// Reads [`Item::to_json`]. `tag` is the store's own version of the text.
    pub(crate) fn of_json(text: &[u8], tag: &str) -> Result<Self, Refusal> {
        let fields =
            object(text).map_err(|_| corrupt("the stored value is not a JSON object, so it is not an item"))?;
        let value = fields.get("value").and_then(Json::as_str).and_then(|value| STANDARD.decode(value).ok());
        let writes = fields.get("writeIds").map_or(Some(""), Json::as_str);
        let item = Self::read(fields.get("version").and_then(Json::as_u64), value, writes)?;
        Ok(Self { tag: tag.to_string(), ..item })
    }

    /// The ids of the last writes, as they are stored.
    pub fn writes(&self) -> &str {
        &self.writes
    }

    /// The id of the last write; empty where another program wrote none.
    pub fn last_write(&self) -> &str {
        self.ids().next().unwrap_or_default()
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.writes.split_whitespace()
    }
}

/// One update of one item: what to ask the store, and what to make of its answers. One answer at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    stage: Stage,
    tries: u32,
    most: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Read,
    Decide(Option<Item>),
    Write(Write),
    /// The condition of a write did not hold: has it come through all the same?
    Look(Write),
}

/// A write under way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    seen: Option<Item>,
    new: Item,
    /// An earlier send of it may have been applied.
    doubt: bool,
}

/// A question to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// Read the item.
    Read,
    /// Write `new`, if the item is as it was `seen`, or if there is none where none was seen.
    Write {
        /// As it was read.
        seen: Option<&'a Item>,
        /// As it is to be.
        new: &'a Item,
    },
}

/// The store's answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The item, or that there is none. To a write: its condition did not hold, and this is there.
    Found(Option<Item>),
    /// The item was written.
    Written,
    /// The condition of the write did not hold. Nothing was shown.
    Raced,
    /// No answer: not applied, and why, or unknown.
    Failed(Outcome),
}

/// The next step of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask what [`Update::ask`] says.
    Ask,
    /// Look at [`Update::current`], and go on with [`Update::write`] or leave it.
    Decide,
    /// Sleep, then ask what [`Update::ask`] says.
    Pause(Backoff, u32),
    /// The new value is in place.
    Done(Item),
    /// It is over.
    Failed(Failure),
}

/// How an update fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Others came first, each time. Nothing was written.
    Contended,
    /// The store does not do it. Nothing was written.
    Refused(Refusal),
    /// The store was not reached, or did not answer. Nothing was written.
    Unavailable(Fault),
    /// The value may have been written, or may be yet.
    Unknown(Fault),
}

impl Answer {
    /// The answer of a read that has shown this.
    pub(crate) fn of(read: Result<Option<Item>, Refusal>) -> Self {
        match read {
            Ok(item) => Self::Found(item),
            Err(refusal) => Self::Failed(Outcome::NotApplied(refusal)),
        }
    }

    /// The request cannot be made, so that nothing was sent.
    pub const fn denied(denial: Denial) -> Self {
        Self::Failed(Outcome::NotApplied(Refusal::Denied(denial)))
    }
}

impl Update {
    /// Begins with a read. `most` is how often anything is tried, at least once.
    pub fn new(most: u32) -> Self {
        Self { stage: Stage::Read, tries: 1, most: most.max(1) }
    }

    /// To be asked.
    pub const fn ask(&self) -> Ask<'_> {
        match &self.stage {
            Stage::Read | Stage::Decide(_) | Stage::Look(_) => Ask::Read,
            Stage::Write(write) => Ask::Write { seen: write.seen.as_ref(), new: &write.new },
        }
    }

    /// How often it has been tried by now.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// The item, where there is something to decide.
    pub const fn current(&self) -> Option<&Item> {
        match &self.stage {
            Stage::Decide(item) => item.as_ref(),
            Stage::Read | Stage::Write(_) | Stage::Look(_) => None,
        }
    }

    /// Makes [`Update::ask`] write `value`, if nobody has written since. `id` is random.
    ///
    /// # Errors
    /// A value longer than [`MAX_VALUE`], or an item that has been written 2^53 - 1 times; nothing was asked to decide.
    pub fn write(&mut self, value: Vec<u8>, id: [u8; 16]) -> Result<(), Denial> {
        let Stage::Decide(seen) = &mut self.stage else {
            return Err(denied("there is nothing to decide at this point"));
        };
        if value.len() > MAX_VALUE {
            return Err(denied(&format!("the value has {} bytes; at most {MAX_VALUE} are allowed", value.len())));
        }
        let version = seen.as_ref().map_or(0, |item| item.version) + 1;
        if version > MAX_VERSION {
            return Err(denied("the item has been written 2^53 - 1 times, which is the most"));
        }
        let id = format!("{:032x}", u128::from_be_bytes(id));
        let before = seen.iter().flat_map(Item::ids);
        let ids: Vec<&str> = [id.as_str()].into_iter().chain(before).take(MOST_IDS).collect();
        let new = Item { value, version, writes: ids.join(" "), tag: String::new() };
        self.stage = Stage::Write(Write { seen: seen.take(), new, doubt: false });
        Ok(())
    }

    /// Handles the answer to [`Update::ask`].
    pub fn answer(&mut self, answer: Answer) -> Next {
        match core::mem::replace(&mut self.stage, Stage::Read) {
            Stage::Read => self.read(answer),
            Stage::Write(write) => self.written(write, answer),
            Stage::Look(write) => self.looked(write, answer),
            stage @ Stage::Decide(_) => {
                self.stage = stage;
                Next::Decide
            }
        }
    }

    fn read(&mut self, answer: Answer) -> Next {
        match answer {
            Answer::Found(item) => {
                self.stage = Stage::Decide(item);
                Next::Decide
            }
            Answer::Written | Answer::Raced => self.again(Backoff::NORMAL, Failure::Unavailable(misfit())),
            Answer::Failed(outcome) => match judged(outcome) {
                (Some(backoff), failure) => self.again(backoff, failure),
                (None, failure) => Next::Failed(failure),
            },
        }
    }

    fn written(&mut self, mut write: Write, answer: Answer) -> Next {
        match answer {
            Answer::Written => Next::Done(write.new),
            Answer::Found(item) => self.raced(write, item.as_ref()),
            // Something on the way may have sent it twice, and this is the answer to the second.
            Answer::Raced => {
                self.stage = Stage::Look(write);
                Next::Ask
            }
            Answer::Failed(outcome) => {
                write.doubt |= matches!(outcome, Outcome::Unknown(_));
                self.unanswered(write, outcome, Stage::Write)
            }
        }
    }

    fn looked(&mut self, write: Write, answer: Answer) -> Next {
        match answer {
            // A read that is behind shows the very item that the write wanted.
            Answer::Found(Some(item)) if write.seen.as_ref() == Some(&item) && !item.tag.is_empty() => {
                let behind = Fault::new(FaultKind::Busy, "the store does not show yet what was written");
                self.unanswered(Write { doubt: true, ..write }, Outcome::Unknown(behind), Stage::Look)
            }
            Answer::Found(item) => self.raced(write, item.as_ref()),
            Answer::Written | Answer::Raced => self.unanswered(write, Outcome::Unknown(misfit()), Stage::Look),
            Answer::Failed(outcome) => self.unanswered(Write { doubt: true, ..write }, outcome, Stage::Look),
        }
    }

    /// The condition did not hold, and this is there.
    fn raced(&mut self, write: Write, item: Option<&Item>) -> Next {
        if item.is_some_and(|item| item.ids().any(|id| id == write.new.last_write())) {
            return Next::Done(write.new);
        }
        if !write.doubt || write.lost_to(item) {
            return self.again(Backoff::NORMAL, Failure::Contended);
        }
        Next::Failed(Failure::Unknown(Fault::new(
            FaultKind::Protocol,
            "an answer was lost, and the item no longer shows whether the value was written",
        )))
    }

    fn unanswered(&mut self, write: Write, outcome: Outcome, stage: fn(Write) -> Stage) -> Next {
        let (backoff, failure) = judged(outcome);
        let failure = write.ended(failure);
        match backoff {
            Some(backoff) => {
                self.stage = stage(write);
                self.again(backoff, failure)
            }
            None => Next::Failed(failure),
        }
    }

    fn again(&mut self, backoff: Backoff, failure: Failure) -> Next {
        if self.tries >= self.most {
            return Next::Failed(failure);
        }
        self.tries += 1;
        Next::Pause(backoff, self.tries - 2)
    }
}

impl Write {
    /// Returns true if another write has taken the place of this one, which then never was applied and never will be.
    fn lost_to(&self, item: Option<&Item>) -> bool {
        let Some(item) = item else { return false };
        let Some(later) = item.version.checked_sub(self.new.version) else { return false };
        let Ok(later) = usize::try_from(later) else { return false };
        let mut ids = item.ids().skip(later);
        let is_another = ids.next().is_some_and(|id| id != self.new.last_write());
        // What was read stands before it: this is still the item that was read.
        is_another && ids.next() == self.new.ids().nth(1)
    }

    /// Converts a failure for a write that may have been applied before.
    fn ended(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unavailable(fault) if self.doubt => Failure::Unknown(fault),
            Failure::Refused(refusal) if self.doubt => Failure::Unknown(fault_of(refusal)),
            failure @ (Failure::Contended | Failure::Refused(_) | Failure::Unavailable(_) | Failure::Unknown(_)) => {
                failure
            }
        }
    }
}

fn fault_of(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault,
        Refusal::Denied(denial) => Fault::new(FaultKind::Server, &denial.detail),
        Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } => misfit(),
    }
}

/// Returns the pause before another try, if one is worthwhile, and the failure that it is otherwise.
fn judged(outcome: Outcome) -> (Option<Backoff>, Failure) {
    match outcome {
        Outcome::Unknown(fault) => (Some(Backoff::NORMAL), Failure::Unavailable(fault)),
        Outcome::NotApplied(Refusal::Unavailable(fault)) => (Some(Backoff::NORMAL), Failure::Unavailable(fault)),
        Outcome::NotApplied(Refusal::Throttled(fault)) => (Some(Backoff::THROTTLED), Failure::Unavailable(fault)),
        Outcome::NotApplied(refusal) => (None, Failure::Refused(refusal)),
        Outcome::Applied(_) => (None, Failure::Unavailable(misfit())),
    }
}

fn is_history(writes: &str) -> bool {
    let ids: Vec<&str> = writes.split(' ').collect();
    let is_id = |id: &&str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ids.len() <= MOST_IDS && ids.iter().all(is_id)
}

pub(crate) fn misfit() -> Fault {
    Fault::new(FaultKind::Protocol, "the answer does not fit the request")
}

pub(crate) fn denied(detail: &str) -> Denial {
    Denial::new(DenialKind::Other, detail)
}

/// The refusal to touch a record that is no item.
pub(crate) fn corrupt(detail: &str) -> Refusal {
    Refusal::Denied(Denial::new(DenialKind::CorruptRecord, detail))
}

#[cfg(test)]
mod tests;
