//! Pages of the names of locks, in the order of their objects' names; in any order from Cosmos DB. Their contents are read one by one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value as Json;

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::errors::{Heard, misfit, tags};
use super::requests::decoded;
use super::{Codec, END, HttpResponse, LONG_NAME, Request, Service, cosmos};
use crate::dynamodb::json::object;
use crate::listing::PAGE;

/// One page of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The names.
    pub names: Vec<Resource>,
    /// Reads objects whose own names do not tell those of their locks; [`Codec::name_in`] finds it in the answer.
    pub reads: Vec<Request>,
    /// The place where the next page begins; `None` after the last one.
    pub next: Option<Vec<u8>>,
}

impl Codec {
    /// Asks for a page of the locks whose names begin with `prefix`; [`Codec::listed`] reads the answer. `after` is empty
    /// for the first page.
    pub fn list(&self, prefix: &str, after: &[u8]) -> Request {
        self.page(&self.below(prefix), core::str::from_utf8(after).unwrap_or_default(), PAGE)
    }

    /// Reads the answer to [`Codec::list`]. Objects that no client writes are left out.
    ///
    /// # Errors
    /// The names could not be read.
    pub fn listed(&self, response: &HttpResponse) -> Result<Names, Outcome> {
        if response.status != 200 {
            return Err(self.classify(response));
        }
        let (keys, next): (Vec<String>, Option<String>) = match self.service {
            Service::S3 => {
                let text = self.xml(response, "<ListBucketResult")?;
                let next = tags(text, "NextContinuationToken").next();
                (tags(text, "Key").map(ToString::to_string).collect(), next.map(ToString::to_string))
            }
            Service::AzureBlob => {
                let text = self.xml(response, "<EnumerationResults")?;
                let next = tags(text, "NextMarker").next().filter(|next| !next.is_empty());
                (tags(text, "Name").map(ToString::to_string).collect(), next.map(ToString::to_string))
            }
            Service::Gcs => {
                let fields = object(&response.body).map_err(|_| misfit())?;
                let items = fields.get("items").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
                let names = items.iter().filter_map(|item| item.get("name")?.as_str().map(ToString::to_string));
                let next = fields.get("nextPageToken").and_then(Json::as_str).map(ToString::to_string);
                (names.collect(), next.filter(|next| !next.is_empty()))
            }
            Service::CosmosDb => {
                let next = response.header("x-ms-continuation").map(ToString::to_string);
                (cosmos::keys(response)?, next.filter(|next| !next.is_empty()))
            }
        };
        let all = self.below("");
        let mut found = Names { next: next.map(String::into_bytes), ..Names::default() };
        for key in &keys {
            let Some(encoded) = key.strip_prefix(all.as_str()).and_then(|rest| rest.strip_suffix(END)) else {
                continue;
            };
            match encoded.contains('!') {
                true => found.reads.push(self.read(key)),
                false => found.names.extend(decoded(encoded).and_then(|name| Resource::new(&name).ok())),
            }
        }
        Ok(found)
    }

    /// The name of the lock in the answer to one of [`Names::reads`]; `None` where no client wrote the object.
    ///
    /// # Errors
    /// It could not be read.
    pub fn name_in(&self, response: &HttpResponse) -> Result<Option<Resource>, Outcome> {
        match self.heard_read(Ok(response)) {
            Heard::Read(row) => {
                let fields = row.body.and_then(|body| object(&body).ok());
                let name = fields.as_ref().and_then(|fields| fields.get(LONG_NAME)?.as_str());
                Ok(name.and_then(|name| Resource::new(name).ok()))
            }
            Heard::Failed(outcome) => Err(outcome),
            Heard::Written(_) | Heard::Raced => Err(misfit()),
        }
    }

    pub(super) fn xml<'a>(&self, response: &'a HttpResponse, root: &str) -> Result<&'a str, Outcome> {
        core::str::from_utf8(&response.body).ok().filter(|text| text.contains(root)).ok_or_else(misfit)
    }
}
