//! The memory of what one store has shown last, and the object of the marker.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::json;

use leasehold_core::op::{Denial, DenialKind};

use super::requests::Version;
use crate::dynamodb::json::object;

/// The most objects that are remembered: more than a client holds locks.
const MOST_ROWS: usize = 4096;

/// An object as it was read or written last.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Row {
    /// `None` where there is no such object.
    pub(super) version: Option<Version>,
    pub(super) body: Option<Vec<u8>>,
}

/// The memory of what a store has shown last: the objects that were written from here, whose next operation needs no read,
/// and the marker of the quorum. Keep one for each store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Memory {
    rows: BTreeMap<String, Row>,
    /// A read may miss a write that was answered before, so that no marker is known to stand.
    pub(super) may_be_stale: bool,
}

impl Memory {
    /// Notes if a read may miss a write that was answered before. Such a store is no node of a quorum.
    pub fn set_may_be_stale(&mut self, may_be_stale: bool) {
        self.may_be_stale = may_be_stale;
    }

    pub(super) fn row(&self, key: &str) -> Option<Row> {
        self.rows.get(key).cloned()
    }

    pub(super) fn note(&mut self, key: &str, row: Row) {
        if self.rows.len() >= MOST_ROWS && !self.rows.contains_key(key) {
            self.rows.pop_first();
        }
        self.rows.insert(key.to_string(), row);
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.rows.remove(key);
    }
}

pub(super) fn marker_body(text: &str) -> Vec<u8> {
    json!({ "quorum": text }).to_string().into_bytes()
}

/// The marker in the body of its object; empty where there is none.
///
/// # Errors
/// No client writes such an object.
pub(super) fn marker_text(body: &[u8]) -> Result<String, Denial> {
    let fields = object(body).ok();
    let text = fields.as_ref().and_then(|fields| fields.get("quorum")?.as_str());
    text.map(ToString::to_string).ok_or_else(|| {
        let detail = "the object quorum.json holds what no client writes: delete it by hand, and mark the nodes again with \
                      `leasehold quorum init --force` while nobody holds a lock";
        Denial::new(DenialKind::CorruptRecord, detail)
    })
}
