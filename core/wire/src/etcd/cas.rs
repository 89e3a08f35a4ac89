//! Items of compare-and-set ([`crate::cas`]) in etcd: keys `PREFIX` `item/NAME` with a JSON object, written where they
//! are as they were read: `mod_revision` and value, since a backup that was restored may have another value at that revision.

use alloc::string::String;

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::txn::{Draft, Row, RowVersion, misfit};
use super::{Codec, HttpResponse, Request, one};
use crate::cas::{Answer, Ask, Item};

/// The request that asks this of the item `name`.
pub fn request(codec: &Codec, name: &Resource, ask: Ask<'_>) -> Request {
    let key = key(codec, name);
    let draft = match ask {
        Ask::Read => Draft::reading(&[key]),
        Ask::Write { seen, new } => {
            let read = match seen.and_then(|seen| seen.tag.split_once(' ')) {
                // A read has shown it, so it is a number.
                Some((revision, value)) => {
                    (RowVersion::Revision(revision.parse().unwrap_or(0)), Some(value.as_bytes().to_vec()))
                }
                None => (RowVersion::Revision(0), None),
            };
            let read = Row { key: key.clone(), version: read.0, value: read.1 };
            Draft::writing(&[read], &[(key, new.to_json(None))])
        }
    };
    Draft::together(alloc::vec![draft])
}

/// Reads the answer to [`request`]; where there is none, this is what is known of the request.
pub fn answer(codec: &Codec, name: &Resource, ask: Ask<'_>, response: Result<&HttpResponse, Outcome>) -> Answer {
    let txn = match response.and_then(|response| one(response, &[key(codec, name)])) {
        Ok((txn, _)) => txn,
        Err(outcome) => return Answer::Failed(outcome),
    };
    match (ask, txn.succeeded, txn.rows.into_iter().next()) {
        (Ask::Write { .. }, true, None) => Answer::Written,
        (Ask::Read, true, Some(row)) | (Ask::Write { .. }, false, Some(row)) => match (row.version, row.value) {
            (RowVersion::Revision(revision), Some(value)) => {
                let tag = alloc::format!("{revision} {}", String::from_utf8_lossy(&value));
                Answer::of(Item::of_json(&value, &tag).map(Some))
            }
            _ => Answer::Found(None),
        },
        _ => Answer::Failed(misfit()),
    }
}

fn key(codec: &Codec, name: &Resource) -> String {
    alloc::format!("{}item/{}", codec.prefix, name.as_str())
}
