//! Compare-and-set: a new value for an item, if nobody has changed it since it was read. No lock takes part.
//!
//! | attribute | type | |
//! |---|---|---|
//! | the table's keys | S | [`PREFIX`] and the name; a sort key as for locks |
//! | `version` | N | 1, and one more with every write |
//! | `value` | B | the value |
//! | `writeIds` | S | the ids of the last writes, the newest first, 32 hexadecimal digits each, with spaces between |
//!
//! A write whose answer was lost is sent again as it was: either its condition still holds, or its id stands in the item,
//! or the item shows that others have come first. Only if so many others have written meanwhile that the item has
//! forgotten, nobody can tell, and the update ends as [`Failure::Unknown`]. Items are not deleted, for that forgets all.
//!
//! No lock has such a name, since names of locks have no control characters; a row with an attribute of a lock is refused.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value as Json, json};

use super::exchange::Heard;
use super::expressions;
use super::json::{as_bytes, as_number, as_text, bytes, number, text};
use super::record::OURS;
use super::{Repeat, Request, Response, Settings, Target};
use leasehold_core::Resource;
use leasehold_core::backoff::Backoff;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

/// The prefix of a name in the partition key.
pub const PREFIX: &str = "cas\u{1f}";

/// The longest value, in bytes. DynamoDB's own bound, 400 KB, holds for the item as a whole.
pub const MAX_VALUE: usize = 380 << 10;

/// How many writes an item remembers.
pub const MOST_IDS: usize = 8;

/// Beyond it, other languages lose digits.
const MAX_VERSION: u64 = (1 << 53) - 1;

const VERSION: &str = "version";
const VALUE: &str = "value";
const WRITES: &str = "writeIds";

/// An item as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// Its number.
    pub version: u64,
    /// As they stand in the item; empty where another program wrote none.
    writes: String,
}

impl core::fmt::Debug for Item {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "version {} with {} bytes", self.version, self.value.len())
    }
}

/// One update of one item: what to send, and what to make of the answers. One answer at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    settings: Settings,
    row: String,
    stage: Stage,
    request: Request,
    tries: u32,
    most: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Read,
    Decide(Option<Item>),
    Write(Write),
}

/// A write under way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    seen: Option<Item>,
    new: Item,
    id: String,
    /// An earlier send of it may have been applied.
    doubt: bool,
}

/// The next step of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at [`Update::current`], and go on with [`Update::write`] or leave it.
    Decide,
    /// Sleep, then send [`Update::request`].
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
    /// The table does not do it. Nothing was written.
    Refused(Refusal),
    /// The table was not reached, or did not answer. Nothing was written.
    Unavailable(Fault),
    /// The value may have been written, or may be yet.
    Unknown(Fault),
}

/// Reads an item.
///
/// # Errors
/// A name that cannot be one, or a table whose keys are called as attributes of items.
pub fn get(settings: &Settings, name: &str) -> Result<Request, Denial> {
    Ok(expressions::get(settings, &row(settings, name)?))
}

/// Reads the answer to [`get`].
///
/// # Errors
/// The outcome of a request that was not answered with an item or its absence.
pub fn got(settings: &Settings, name: &str, response: &Response) -> Result<Option<Item>, Outcome> {
    let row = row(settings, name).map_err(|denial| Outcome::NotApplied(Refusal::Denied(denial)))?;
    match Heard::of(settings, Ok(response)) {
        Heard::Success(fields) => read(settings, &row, fields.get("Item")).map_err(Outcome::NotApplied),
        Heard::Repeat(_, outcome) | Heard::Failed(outcome) => Err(outcome),
        Heard::Conflict(_) => Err(Outcome::Unknown(misfit())),
    }
}

impl Update {
    /// Begins with a read of the item `name`, to be sent. `most` is how often anything is tried, at least once.
    ///
    /// # Errors
    /// As for [`get`].
    pub fn new(settings: &Settings, name: &str, most: u32) -> Result<Self, Denial> {
        let row = row(settings, name)?;
        let request = expressions::get(settings, &row);
        Ok(Self { settings: settings.clone(), row, stage: Stage::Read, request, tries: 1, most: most.max(1) })
    }

    /// To be sent.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// How often it has been tried by now.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// The item, where there is something to decide.
    pub fn current(&self) -> Option<&Item> {
        match &self.stage {
            Stage::Decide(item) => item.as_ref(),
            Stage::Read | Stage::Write(_) => None,
        }
    }

    /// Makes [`Update::request`] write `value`, if nobody has written since. `id` is random.
    ///
    /// # Errors
    /// A value longer than [`MAX_VALUE`], or an item that has been written 2^53 - 1 times; nothing was asked to decide.
    pub fn write(&mut self, value: Vec<u8>, id: [u8; 16]) -> Result<(), Denial> {
        let Stage::Decide(seen) = &mut self.stage else {
            return Err(denied("there is nothing to decide at this point"));
        };
        if value.len() > MAX_VALUE {
            return Err(denied(&format!("the value has {} bytes; it has at most {MAX_VALUE}", value.len())));
        }
        let version = seen.as_ref().map_or(0, |item| item.version) + 1;
        if version > MAX_VERSION {
            return Err(denied("the item has been written 2^53 - 1 times, which is the most"));
        }
        let id = format!("{:032x}", u128::from_be_bytes(id));
        let before = seen.as_ref().map_or("", |item| item.writes.as_str());
        let ids: Vec<&str> = [id.as_str()].into_iter().chain(before.split_whitespace()).take(MOST_IDS).collect();
        let new = Item { value, version, writes: ids.join(" ") };
        let write = Write { seen: seen.take(), new, id, doubt: false };
        self.request = write.request(&self.settings, &self.row);
        self.stage = Stage::Write(write);
        Ok(())
    }

    /// Handles an answer or, where there is none, what is known of the request.
    pub fn answer(&mut self, answer: Result<&Response, Outcome>) -> Next {
        let heard = Heard::of(&self.settings, answer);
        match core::mem::replace(&mut self.stage, Stage::Read) {
            Stage::Read => self.read(heard),
            Stage::Write(write) => self.written(write, heard),
            stage @ Stage::Decide(_) => {
                self.stage = stage;
                Next::Decide
            }
        }
    }

    fn read(&mut self, heard: Heard) -> Next {
        match heard {
            Heard::Success(fields) => match read(&self.settings, &self.row, fields.get("Item")) {
                Ok(item) => {
                    self.stage = Stage::Decide(item);
                    Next::Decide
                }
                Err(refusal) => Next::Failed(Failure::Refused(refusal)),
            },
            Heard::Conflict(_) => self.again(Backoff::NORMAL, Failure::Unavailable(misfit())),
            Heard::Repeat(Repeat::FreshCredentials | Repeat::ServerTime(_), outcome) | Heard::Failed(outcome) => {
                let (backoff, failure) = judged(outcome);
                match backoff {
                    Some(backoff) => self.again(backoff, failure),
                    None => Next::Failed(failure),
                }
            }
        }
    }

    fn written(&mut self, mut write: Write, heard: Heard) -> Next {
        match heard {
            Heard::Success(fields) => {
                let shown = fields.get("Attributes").and_then(|shown| shown.get(WRITES)).and_then(as_text);
                if shown == Some(&write.new.writes) {
                    return Next::Done(write.new);
                }
                write.doubt = true;
                self.resend(write, Backoff::NORMAL, misfit())
            }
            Heard::Conflict(shown) => match read(&self.settings, &self.row, shown.as_ref()) {
                Ok(Some(item)) if item.writes.split_whitespace().any(|id| id == write.id) => Next::Done(write.new),
                Ok(item) if !write.doubt || write.lost_to(item.as_ref()) => {
                    self.request = expressions::get(&self.settings, &self.row);
                    self.again(Backoff::NORMAL, Failure::Contended)
                }
                Ok(_) => Next::Failed(Failure::Unknown(Fault::new(
                    FaultKind::Protocol,
                    "an answer was lost, and the item does not tell any more whether its write came through",
                ))),
                Err(refusal) => Next::Failed(write.ended(Failure::Refused(refusal))),
            },
            Heard::Repeat(Repeat::FreshCredentials | Repeat::ServerTime(_), outcome) | Heard::Failed(outcome) => {
                write.doubt |= matches!(outcome, Outcome::Unknown(_));
                let (backoff, failure) = judged(outcome);
                match (backoff, failure) {
                    (Some(backoff), Failure::Unavailable(fault) | Failure::Unknown(fault)) => {
                        self.resend(write, backoff, fault)
                    }
                    (_, failure) => Next::Failed(write.ended(failure)),
                }
            }
        }
    }

    fn resend(&mut self, write: Write, backoff: Backoff, fault: Fault) -> Next {
        let failure = write.ended(Failure::Unavailable(fault));
        self.stage = Stage::Write(write);
        self.again(backoff, failure)
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
    fn request(&self, settings: &Settings, row: &str) -> Request {
        let mut names = Map::new();
        let mut values = Map::new();
        for (short, name) in [("#version", VERSION), ("#value", VALUE), ("#writes", WRITES)] {
            names.insert(short.to_string(), name.into());
        }
        values.insert(":version".to_string(), number(self.new.version));
        values.insert(":value".to_string(), bytes(&self.new.value));
        values.insert(":writes".to_string(), text(&self.new.writes));
        // The ids beside the version: an item that was deleted and made again has the same numbers.
        let condition = match &self.seen {
            None => {
                names.insert("#pk".to_string(), settings.key_name().into());
                "attribute_not_exists(#pk)"
            }
            Some(seen) => {
                values.insert(":seen".to_string(), number(seen.version));
                if seen.writes.is_empty() {
                    "#version = :seen AND attribute_not_exists(#writes)"
                } else {
                    values.insert(":by".to_string(), text(&seen.writes));
                    "#version = :seen AND #writes = :by"
                }
            }
        };
        let body = json!({
            "TableName": settings.table(),
            "Key": expressions::key(settings, row),
            "UpdateExpression": "SET #version = :version, #value = :value, #writes = :writes",
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValues": "UPDATED_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        Request::new(Target::UpdateItem, &body)
    }

    /// Returns true if another write has taken the place of this one, which then never was applied and never will be.
    fn lost_to(&self, item: Option<&Item>) -> bool {
        let Some(item) = item else { return false };
        let Some(later) = item.version.checked_sub(self.new.version) else { return false };
        let Ok(later) = usize::try_from(later) else { return false };
        let mut ids = item.writes.split_whitespace().skip(later);
        let is_another = ids.next().is_some_and(|id| id != self.id);
        let before = self.new.writes.split_whitespace().nth(1);
        // What was read stands before it: this is still the item that was read.
        is_another && ids.next() == before
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

fn row(settings: &Settings, name: &str) -> Result<String, Denial> {
    let resource = Resource::new(name).map_err(|error| denied(&error.to_string()))?;
    let taken = [VERSION, VALUE, WRITES];
    let keys = [Some(settings.key_name()), settings.sort().map(|sort| &*sort.name)];
    match keys.into_iter().flatten().find(|key| taken.contains(key)) {
        Some(key) => {
            Err(denied(&format!("the table's key {key:?} is called as an attribute of items: use another table")))
        }
        None => Ok(format!("{PREFIX}{}", resource.as_str())),
    }
}

fn read(settings: &Settings, row: &str, item: Option<&Json>) -> Result<Option<Item>, Refusal> {
    let Some(item) = item else { return Ok(None) };
    let wrong = |what: &str| Refusal::Denied(Denial::new(DenialKind::CorruptRecord, what));
    let fields = item.as_object().ok_or_else(|| wrong("the item is no map"))?;
    if fields.get(settings.key_name()).and_then(as_text) != Some(row) {
        return Err(wrong("the answer shows another item than was asked for"));
    }
    if let Some(name) = OURS.iter().find(|name| fields.contains_key(**name)) {
        return Err(wrong(&format!("the item has the attribute {name} of a lock: it is left alone")));
    }
    let version = fields.get(VERSION).and_then(as_number).filter(|version| (1..=MAX_VERSION).contains(version));
    let value = fields.get(VALUE).and_then(as_bytes);
    let writes = match fields.get(WRITES) {
        None => Some(""),
        Some(writes) => as_text(writes).filter(|writes| is_history(writes)),
    };
    match (version, value, writes) {
        (Some(version), Some(value), Some(writes)) => Ok(Some(Item { value, version, writes: writes.to_string() })),
        _ => Err(wrong(
            "the item is not one of these: it needs a number `version`, bytes `value`, and as `writeIds` what was written \
             there, or nothing",
        )),
    }
}

fn is_history(writes: &str) -> bool {
    let ids: Vec<&str> = writes.split(' ').collect();
    let is_id = |id: &&str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ids.len() <= MOST_IDS && ids.iter().all(is_id)
}

fn misfit() -> Fault {
    Fault::new(FaultKind::Protocol, "the answer does not fit the request")
}

fn denied(detail: &str) -> Denial {
    Denial::new(DenialKind::Other, detail)
}

#[cfg(test)]
mod tests;
