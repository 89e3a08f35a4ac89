//! Pages of the locks below the prefix, in the order of their names.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{Applied, Op, Outcome, Seen};
use leasehold_core::store::StoreNow;
use leasehold_core::{Monotonic, Resource};

use super::record::{NOW, Row};
use super::txn::misfit;
use super::{Codec, HttpResponse, Request, classify};
use crate::dynamodb::json::object;
use crate::listing::Page;

/// The most keys of one answer, whose values come along: 4 KiB of data and as much again around them must fit the longest
/// body.
const KEYS: u32 = 100;

impl Codec {
    /// Asks for a page of the locks whose names begin with `prefix`; [`Codec::listed`] reads the answer. `after` is empty
    /// for the first page.
    pub fn list(&self, prefix: &str, after: &[u8]) -> Request {
        let all = self.below(prefix);
        // The first key that is larger than any with this beginning. No key has the byte 0xFF, which UTF-8 lacks.
        let end = [all.as_bytes(), &[0xff]].concat();
        let from = if after.is_empty() { all.into_bytes() } else { [after, &[0]].concat() };
        let body =
            json!({ "key": STANDARD.encode(from), "range_end": STANDARD.encode(end), "limit": KEYS.to_string() });
        Request { path: "/v3/kv/range", body: body.to_string().into_bytes(), writes: false }
    }

    /// Reads the answer to [`Codec::list`]. `unix_ms` are the reader's milliseconds since 1970. Values that no client
    /// writes are left out.
    ///
    /// # Errors
    /// The keys could not be read.
    pub fn listed(&self, response: &HttpResponse, unix_ms: u64) -> Result<Page, Outcome> {
        if response.status != 200 {
            return Err(classify(response));
        }
        let fields = object(&response.body).map_err(|_| misfit())?;
        if !fields.contains_key("header") {
            return Err(misfit());
        }
        let rows = fields.get("kvs").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let mut page = Page::default();
        let mut last = None;
        for row in rows {
            let part = |name: &str| STANDARD.decode(row.get(name)?.as_str()?).ok();
            let key = part("key").ok_or_else(misfit)?;
            page.records.extend(part("value").and_then(|value| self.record(&key, &value, unix_ms)));
            last = Some(key);
        }
        let has_more = fields.get("more").and_then(Json::as_bool).unwrap_or(false);
        page.next = last.filter(|_| has_more);
        Ok(page)
    }

    fn record(&self, key: &[u8], value: &[u8], unix_ms: u64) -> Option<(Resource, Option<Seen>)> {
        let name = core::str::from_utf8(key).ok()?.strip_prefix(self.below("").as_str())?;
        let row = Row::parse(value).ok()?;
        let now = StoreNow { boot: NOW, uptime: Monotonic::from_ns(0), unix_ms };
        match serve(row.record.as_ref(), NodeMemory::default(), &Op::Read, &now).outcome {
            Outcome::Applied(Applied::Read(seen)) => Some((Resource::new(name).ok()?, Some(seen))),
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => None,
        }
    }

    fn below(&self, prefix: &str) -> String {
        alloc::format!("{}lock/{prefix}", self.prefix)
    }
}
