//! Items of compare-and-set ([`crate::cas`]) as objects: `PREFIX` `item/NAME.json`, beside those of locks.
//!
//! The body is a JSON object of `version`, `value` (Base64) and `writeIds`. It never occurs twice, since each write has
//! another id, so the ETag tells one from the other.

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::errors::Heard;
use super::memory::Row;
use super::requests::Version;
use super::{Codec, HttpResponse, Key, Request};
use crate::cas::{Answer, Ask, Item};

/// The folder of items below the prefix.
pub(super) const FOLDER: &str = "item";

/// The request that asks this of the item `name`.
pub fn request(codec: &Codec, name: &Resource, ask: Ask<'_>) -> Request {
    let Key { text: key, long_name } = codec.key_in(FOLDER, name);
    match ask {
        Ask::Read => codec.read(&key),
        Ask::Write { seen, new } => {
            let version = seen.map(|seen| Version(seen.tag.clone()));
            codec.write(&key, version.as_ref(), new.to_json(long_name.as_deref()).as_bytes())
        }
    }
}

/// Reads the answer to [`request`]; where there is none, this is what is known of the request.
pub fn answer(codec: &Codec, ask: Ask<'_>, response: Result<&HttpResponse, Outcome>) -> Answer {
    let heard = match ask {
        Ask::Read => codec.heard_read(response),
        Ask::Write { .. } => codec.heard_write(response),
    };
    match heard {
        Heard::Read(Row { body: Some(body), version: Some(Version(tag)) }) => {
            Answer::of(Item::of_json(&body, &tag).map(Some))
        }
        Heard::Read(_) => Answer::Found(None),
        Heard::Written(_) => Answer::Written,
        Heard::Raced => Answer::Raced,
        Heard::Failed(outcome) => Answer::Failed(outcome),
    }
}
