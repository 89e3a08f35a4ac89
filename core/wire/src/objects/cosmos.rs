//! Azure Cosmos DB for NoSQL: documents of one container, each in a logical partition of its own (`/id`).
//!
//! The id of a document is the key of the object with `:` for `/` and `=` for `%`, which ids may not have.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value as Json, json};
use sha2::Sha256;

use leasehold_core::op::{Denial, DenialKind, Outcome, Refusal};

use super::errors::misfit;
use super::requests::{Version, decoded, encoded};
use super::{Codec, HttpResponse, Method, Request, Service};
use crate::dynamodb::json::object;
use crate::sigv4::write_http_date;

/// Of the API, as requests name it.
const API: &str = "2018-12-31";
/// The header that makes a request a query.
const IS_QUERY: &str = "x-ms-documentdb-isquery";
/// The properties of an account that locks depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Properties {
    /// The account takes writes in several regions, of which the last one wins: two clients may hold a lock.
    pub has_several_write_regions: bool,
    /// The default consistency, such as `Session`.
    pub consistency: String,
}

impl Properties {
    /// Said of a node of a quorum whose reads may be stale: no marker is known to stand.
    pub const NO_NODE: &str = "reads of this account may be stale, so it cannot be a node of a quorum: give it the \
                               consistency Strong or Bounded staleness";

    /// Said to a client with a session: a session that lives would look like one that is over.
    pub const NO_SESSIONS: &str = "reads of this account may be stale, so a live session could be mistaken for one \
                                   that has ended: leave the session out, or give the account the consistency Strong \
                                   or Bounded staleness";

    /// Tells if a read may miss a write that was answered before: with every consistency but `Strong` and `BoundedStaleness`.
    pub fn reads_may_be_stale(&self) -> bool {
        !["Strong", "BoundedStaleness"].contains(&self.consistency.as_str())
    }
}

pub(super) fn headers() -> Vec<(&'static str, String)> {
    vec![("x-ms-version", API.into())]
}

pub(super) fn read(root: &str, key: &str) -> Request {
    let id = id(key);
    let headers = [headers(), vec![partition(&id)]].concat();
    Request { method: Method::Get, path: document(root, &id), query: String::new(), headers, body: Vec::new() }
}

/// A document is created by a request of its own: a replacement never creates.
pub(super) fn write(root: &str, key: &str, version: Option<&Version>, body: &[u8]) -> Request {
    let id = id(key);
    let mut headers = [headers(), vec![partition(&id), ("content-type", "application/json".into())]].concat();
    let (method, path) = match version {
        Some(Version(etag)) => {
            headers.push(("if-match", etag.clone()));
            (Method::Put, document(root, &id))
        }
        None => (Method::Post, format!("{root}/docs")),
    };
    Request { method, path, query: String::new(), headers, body: with_id(&id, body) }
}

pub(super) fn page(root: &str, prefix: &str, after: &str, most: u32) -> Request {
    let query = json!({
        "query": "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, @prefix)",
        "parameters": [{ "name": "@prefix", "value": id(prefix) }],
    });
    let mut headers = headers();
    headers.extend([
        ("content-type", "application/query+json".to_string()),
        (IS_QUERY, "True".into()),
        ("x-ms-documentdb-query-enablecrosspartition", "True".into()),
        ("x-ms-max-item-count", most.to_string()),
    ]);
    if !after.is_empty() {
        headers.push(("x-ms-continuation", after.into()));
    }
    let body = query.to_string().into_bytes();
    Request { method: Method::Post, path: format!("{root}/docs"), query: String::new(), headers, body }
}

/// The keys in the answer to [`page`].
pub(super) fn keys(response: &HttpResponse) -> Result<Vec<String>, Outcome> {
    let fields = object(&response.body).map_err(|_| misfit())?;
    let ids = fields.get("Documents").and_then(Json::as_array).ok_or_else(misfit)?;
    Ok(ids.iter().filter_map(|id| id.as_str().map(key)).collect())
}

pub(super) fn is_query(request: &Request) -> bool {
    request.headers.iter().any(|(name, _)| *name == IS_QUERY)
}

/// Tells if a signature was refused for its date alone.
pub(super) fn is_time_wrong(response: &HttpResponse) -> bool {
    core::str::from_utf8(&response.body).is_ok_and(|said| said.contains("not valid at the current time"))
}

/// The body as it was written: without what the service adds to a document.
pub(super) fn written(body: &[u8]) -> Vec<u8> {
    let Ok(mut fields) = object(body) else { return body.to_vec() };
    fields.retain(|name, _| name != "id" && !name.starts_with('_'));
    Json::Object(fields).to_string().into_bytes()
}

/// The value of the header `authorization` with the key of an account; `None` for a key that is none. `date` is the
/// value of the header `x-ms-date`.
pub fn with_key(method: Method, path: &str, date: &str, key: &str) -> Option<String> {
    let key = STANDARD.decode(key).ok()?;
    let (kind, link) = resource(path)?;
    let method = method.name().to_ascii_lowercase();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{method}\n{kind}\n{link}\n{}\n\n", date.to_ascii_lowercase()).as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    Some(encoded(&format!("type=master&ver=1.0&sig={signature}")))
}

/// The value of the header `authorization` for a request with a token of Entra ID.
pub(super) fn with_token(token: &str) -> String {
    encoded(&format!("type=aad&ver=1.0&sig={token}"))
}

/// Sets the date of a request to Azure, which its signature needs.
pub(super) fn set_date(request: &mut Request, unix_ms: u64) {
    request.headers.retain(|(name, _)| *name != "x-ms-date");
    request.headers.push(("x-ms-date", write_http_date(unix_ms)));
}

/// The kind of a resource and its link, as signatures have them: a path with an odd number of parts is a list of that kind.
fn resource(path: &str) -> Option<(String, String)> {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect::<Option<_>>()?;
    let Some((last, rest)) = parts.split_last() else { return Some((String::new(), String::new())) };
    Some(match rest.split_last() {
        Some((kind, _)) if parts.len().is_multiple_of(2) => (kind.clone(), parts.join("/")),
        _ => (last.clone(), rest.join("/")),
    })
}

impl Codec {
    /// Asks an account what it says of itself; [`Codec::properties`] reads the answer. Cosmos DB only.
    pub fn account(&self) -> Request {
        Request { method: Method::Get, path: "/".into(), query: String::new(), headers: headers(), body: Vec::new() }
    }

    /// Reads the answer to [`Codec::account`].
    ///
    /// # Errors
    /// It could not be read.
    pub fn properties(&self, response: &HttpResponse) -> Result<Properties, Outcome> {
        let fields = self.fields(response)?;
        let consistency = fields.get("userConsistencyPolicy").and_then(|policy| policy.get("defaultConsistencyLevel"));
        Ok(Properties {
            has_several_write_regions: fields.get("enableMultipleWriteLocations").and_then(Json::as_bool) == Some(true)
                || fields.get("writableLocations").and_then(Json::as_array).is_some_and(|all| all.len() > 1),
            consistency: consistency.and_then(Json::as_str).unwrap_or_default().to_string(),
        })
    }

    /// Asks a container what it says of itself; [`Codec::check_container`] reads the answer. Cosmos DB only.
    pub fn container(&self) -> Request {
        Request {
            method: Method::Get,
            path: self.root.to_string(),
            query: String::new(),
            headers: headers(),
            body: Vec::new(),
        }
    }

    /// Reads the answer to [`Codec::container`].
    ///
    /// # Errors
    /// It could not be read, or locks cannot be kept there.
    pub fn check_container(&self, response: &HttpResponse) -> Result<(), Outcome> {
        let fields = self.fields(response)?;
        let refused = |what: &str| Err(Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, what))));
        let paths = fields.get("partitionKey").and_then(|key| key.get("paths")).and_then(Json::as_array);
        if !paths.is_some_and(|paths| paths.len() == 1 && paths.first().and_then(Json::as_str) == Some("/id")) {
            return refused("the partition key of the container is not /id: create a container for locks that has it");
        }
        if fields.get("defaultTtl").is_some_and(|ttl| !ttl.is_null() && ttl.as_i64() != Some(-1)) {
            return refused(
                "the container deletes its documents after some time, and tokens would begin again: turn its time to \
                 live off",
            );
        }
        Ok(())
    }

    fn fields(&self, response: &HttpResponse) -> Result<serde_json::Map<String, Json>, Outcome> {
        debug_assert_eq!(self.service, Service::CosmosDb);
        if response.status != 200 {
            return Err(self.classify(response));
        }
        object(&response.body).map_err(|_| misfit())
    }
}

fn document(root: &str, id: &str) -> String {
    format!("{root}/docs/{}", encoded(id))
}

fn partition(id: &str) -> (&'static str, String) {
    ("x-ms-documentdb-partitionkey", json!([id]).to_string())
}

fn id(key: &str) -> String {
    key.replace('/', ":").replace('%', "=")
}

fn key(id: &str) -> String {
    id.replace(':', "/").replace('=', "%")
}

/// A body of ours is a JSON object, so the id goes before its first field.
fn with_id(id: &str, body: &[u8]) -> Vec<u8> {
    let rest = body.strip_prefix(b"{").unwrap_or(body);
    let separator = if rest.starts_with(b"}") { "" } else { "," };
    [format!("{{\"id\":{}{separator}", json!(id)).as_bytes(), rest].concat()
}
