//! Items of compare-and-set ([`crate::cas`]) in DynamoDB.
//!
//! | attribute | type | |
//! |---|---|---|
//! | the table's keys | S | [`PREFIX`] and the name; a sort key as for locks |
//! | `version` | N | 1, and one more with every write |
//! | `value` | B | the value |
//! | `writeIds` | S | the ids of the last writes, the newest first, 32 hexadecimal digits each, with spaces between |
//!
//! No lock has such a name, since names of locks have no control characters; a row with an attribute of a lock is refused.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Map, Value as Json, json};

use super::exchange::Heard;
use super::expressions;
use super::json::{as_bytes, as_number, as_text, bytes, number, text};
use super::record::OURS;
use super::{HttpResponse, Request, Settings, Target};
use crate::cas::{Answer, Ask, Item, corrupt, denied, misfit};
use leasehold_core::Resource;
use leasehold_core::op::{Denial, Outcome, Refusal};

/// The prefix of a name in the partition key.
pub const PREFIX: &str = "cas\u{1f}";

const VERSION: &str = "version";
const VALUE: &str = "value";
const WRITES: &str = "writeIds";

/// The request that asks this of the item `name`.
///
/// # Errors
/// A table whose keys are called as attributes of items.
pub fn request(settings: &Settings, name: &Resource, ask: Ask<'_>) -> Result<Request, Denial> {
    let row = row(settings, name)?;
    Ok(match ask {
        Ask::Read => expressions::get(settings, &row),
        Ask::Write { seen, new } => write(settings, &row, seen, new),
    })
}

/// Reads the answer to [`request`]; where there is none, this is what is known of the request.
pub fn answer(settings: &Settings, name: &Resource, ask: Ask<'_>, response: Result<&HttpResponse, Outcome>) -> Answer {
    let row = match row(settings, name) {
        Ok(row) => row,
        Err(denial) => return Answer::denied(denial),
    };
    let found = |shown| Answer::of(read(settings, &row, shown));
    match (ask, Heard::of(settings, response)) {
        (Ask::Read, Heard::Success(fields)) => found(fields.get("Item")),
        (Ask::Write { new, .. }, Heard::Success(fields)) => {
            let shown = fields.get("Attributes").and_then(|shown| shown.get(WRITES)).and_then(as_text);
            match shown == Some(new.writes()) {
                true => Answer::Written,
                false => Answer::Failed(Outcome::Unknown(misfit())),
            }
        }
        (Ask::Write { .. }, Heard::Conflict(shown)) => found(shown.as_ref()),
        (Ask::Read, Heard::Conflict(_)) => Answer::Failed(Outcome::Unknown(misfit())),
        (_, Heard::Failed(outcome)) => Answer::Failed(outcome),
    }
}

fn write(settings: &Settings, row: &str, seen: Option<&Item>, new: &Item) -> Request {
    let mut names = Map::new();
    let mut values = Map::new();
    for (short, name) in [("#version", VERSION), ("#value", VALUE), ("#writes", WRITES)] {
        names.insert(short.to_string(), name.into());
    }
    values.insert(":version".to_string(), number(new.version));
    values.insert(":value".to_string(), bytes(&new.value));
    values.insert(":writes".to_string(), text(new.writes()));
    // The ids beside the version: an item that was deleted and made again has the same numbers.
    let condition = match seen {
        None => {
            names.insert("#pk".to_string(), settings.key_name().into());
            "attribute_not_exists(#pk)"
        }
        Some(seen) => {
            values.insert(":seen".to_string(), number(seen.version));
            if seen.writes().is_empty() {
                "#version = :seen AND attribute_not_exists(#writes)"
            } else {
                values.insert(":by".to_string(), text(seen.writes()));
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

fn row(settings: &Settings, name: &Resource) -> Result<String, Denial> {
    let taken = [VERSION, VALUE, WRITES];
    let keys = [Some(settings.key_name()), settings.sort().map(|sort| &*sort.name)];
    match keys.into_iter().flatten().find(|key| taken.contains(key)) {
        Some(key) => {
            Err(denied(&format!("the table's key {key:?} has the name of an attribute of items: use another table")))
        }
        None => Ok(format!("{PREFIX}{}", name.as_str())),
    }
}

fn read(settings: &Settings, row: &str, item: Option<&Json>) -> Result<Option<Item>, Refusal> {
    let Some(item) = item else { return Ok(None) };
    let fields = item.as_object().ok_or_else(|| corrupt("the item is no map"))?;
    if fields.get(settings.key_name()).and_then(as_text) != Some(row) {
        return Err(corrupt("the answer shows another item than was asked for"));
    }
    if let Some(name) = OURS.iter().find(|name| fields.contains_key(**name)) {
        return Err(corrupt(&format!(
            "the item has the attribute {name} of a lock, so it was not changed: give the item another name"
        )));
    }
    let version = fields.get(VERSION).and_then(as_number);
    let value = fields.get(VALUE).and_then(as_bytes);
    let writes = fields.get(WRITES).map_or(Some(""), as_text);
    Item::read(version, value, writes).map(Some)
}

#[cfg(test)]
mod tests;
