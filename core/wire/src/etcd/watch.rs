//! Releases as they happen: a stream of JSON messages, one a line.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::errors::{of_code, of_reason};
use super::record::Row;
use super::txn::{base64, misfit};
use super::{Codec, Request};
use crate::dynamodb::json::object;

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Watched {
    /// One more of the locks is watched from now on, in the order in which they were asked for.
    Begun,
    /// These locks have changed, and nobody holds them as far as their keys tell.
    Released(Vec<Resource>),
}

impl Codec {
    /// Asks for a stream of the changes of some locks; [`Codec::watched`] reads its messages.
    pub fn watch(&self, resources: &[Resource]) -> Request {
        let create = |resource| json!({ "create_request": { "key": base64(&self.key(resource)) } }).to_string();
        let body: String = resources.iter().map(create).collect();
        Request { path: "/v3/watch", body: body.into_bytes(), writes: false }
    }

    /// Reads one line of the stream.
    ///
    /// # Errors
    /// The stream has ended, for this reason.
    pub fn watched(&self, line: &[u8]) -> Result<Watched, Outcome> {
        let fields = object(line).map_err(|_| misfit())?;
        if let Some(error) = fields.get("error") {
            let code = error.get("grpc_code").and_then(Json::as_u64).unwrap_or_default();
            return Err(of_code(code, error.get("message").and_then(Json::as_str).unwrap_or_default()));
        }
        let result = fields.get("result").ok_or_else(misfit)?;
        let is = |name| result.get(name).and_then(Json::as_bool).unwrap_or_default();
        if is("canceled") {
            let reason = result.get("cancel_reason").and_then(Json::as_str).unwrap_or_default();
            return Err(of_reason(reason));
        }
        if is("created") {
            return Ok(Watched::Begun);
        }
        let events = result.get("events").and_then(Json::as_array);
        Ok(Watched::Released(events.into_iter().flatten().filter_map(|event| self.released(event)).collect()))
    }

    /// The lock, unless somebody holds it.
    fn released(&self, event: &Json) -> Option<Resource> {
        let decoded = |text: &Json| STANDARD.decode(text.as_str()?).ok();
        let kv = event.get("kv")?;
        let key = String::from_utf8(decoded(kv.get("key")?)?).ok()?;
        let resource = Resource::new(key.strip_prefix(&self.key_of(""))?).ok()?;
        let row = kv.get("value").and_then(decoded).and_then(|value| Row::parse(&value).ok());
        let is_held = row.and_then(|row| row.record?.lease).is_some_and(|lease| !lease.released);
        (!is_held).then_some(resource)
    }
}
